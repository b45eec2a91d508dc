"""Runs, sweeps and tables."""
