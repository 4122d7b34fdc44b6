"""Command-line options: shared ones, and those of `check-dns` and `rotate`."""
