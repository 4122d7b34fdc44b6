"""The command line: one module for each command. Parse, call the core, render."""
