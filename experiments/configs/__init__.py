"""One file, one experiment."""
