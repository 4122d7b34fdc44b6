"""Results, checks and specs as text: one module for each format."""
