"""Client secrets and access tokens: in the environment, the OS keyring or a file.

`sources.find_credentials` decides which of them a run uses.
"""
