"""Files that are read within limits, replaced as a whole, locked, and private to their owner."""
