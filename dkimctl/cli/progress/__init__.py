"""How far a long run is, on stderr."""
