"""The two streams: results on stdout, everything else on stderr."""
