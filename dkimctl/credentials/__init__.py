"""Client secrets and access tokens: in the environment, the OS keyring or a file.

`store.find_credentials` decides which of them a run uses.
"""
