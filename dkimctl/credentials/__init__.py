"""Where client secrets and access tokens live: the environment, the OS keyring, or a file.

`find_credentials` decides which of them a run uses; `open_store` opens the one that
`login` writes to. What they give is a `CredentialStore`, and each knows only the account
it is asked for.
"""
