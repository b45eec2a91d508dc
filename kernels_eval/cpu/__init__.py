"""Executor for machines without a GPU: g++ and fibres run CUDA C++."""
