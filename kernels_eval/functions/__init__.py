"""A second domain: small Python functions, judged by hidden tests."""
