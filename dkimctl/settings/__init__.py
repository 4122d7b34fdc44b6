"""Settings: the profile that a command uses, with a value for each of its keys.

Precedence: option, environment variable, config file, earlier `login`, built-in default.
"""
