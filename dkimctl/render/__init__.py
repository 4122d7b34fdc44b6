"""Results in, text out: one module for each format, all opened by `formats.open_renderer`."""
