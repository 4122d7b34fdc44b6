"""Results in, text out: one module for each format, all of them behind `formats.render`."""
