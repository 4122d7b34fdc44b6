"""Settings: the config file, and the profile that a command uses."""
