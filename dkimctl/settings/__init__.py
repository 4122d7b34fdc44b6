"""Settings: which profile a command works with, and what it says.

Flag, then environment, then config file, then what `login` was told, then the default.
"""
