"""Client secrets and access tokens: in the environment, the OS keyring or a file.

`sources.find_credentials` decides which of them a run uses, `sources.open_store` opens the store
that `login` writes to.
"""
