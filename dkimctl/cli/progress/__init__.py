"""The progress of a long run, on stderr."""
