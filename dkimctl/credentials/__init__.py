"""Client secrets and access tokens: in the environment, the OS keyring or a file."""
