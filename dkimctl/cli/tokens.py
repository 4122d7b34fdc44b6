"""The tokens of a session: where a new one comes from, and what becomes of a refused one."""

from __future__ import annotations

from dkimctl.cli.session import Session
from dkimctl.client.tokens import TokenProvider
from dkimctl.credentials.sources import IN_ENVIRONMENT
from dkimctl.errors import ClientRefused, CredentialsError
from dkimctl.models.secret import Token


def open_token_provider(session: Session) -> TokenProvider:
    """The tokens of the profile's account, which is not the sandbox's."""
    tokens = _Tokens(session)
    credentials, account = session.credentials, session.stored_account
    return TokenProvider(
        issue=tokens.issue,
        cached=credentials.get_token(account),
        persist=lambda token: credentials.set_token(account, token),
        discard=tokens.discard,
    )


class _Tokens:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._own_is_refused = False  # the one in DKIMCTL_ACCESS_TOKEN

    def issue(self) -> Token:
        session = self._session
        # Only read when needed, because a keyring may be slow or ask to be unlocked.
        secret = session.credentials.get_secret(session.stored_account)
        if secret is None:
            raise CredentialsError(
                f"the profile {session.profile.name} has no client secret",
                hint="run `dkimctl login`, or set DKIMCTL_CLIENT_SECRET; "
                "--sandbox works without an account",
            )
        try:
            token = session.client.issue_token(session.account.client_id, secret)
        except ClientRefused as error:
            if session.credentials.secret_source(session.stored_account) == IN_ENVIRONMENT:
                raise _naming_the_variable(session, error) from None
            raise
        if self._own_is_refused:
            self._warn_of_own()
        return token

    def discard(self, token: Token) -> None:
        """Forget a token that the service refused; the user's own is theirs to remove."""
        self._session.credentials.discard_token(self._session.stored_account, token)
        self._own_is_refused = token.obtained_at is None

    def _warn_of_own(self) -> None:
        # Reported at the end: this may be a worker thread, under the progress display.
        self._own_is_refused = False
        self._session.at_end(
            self._session.reporter.warn,
            "the service refused the token in DKIMCTL_ACCESS_TOKEN (403), "
            "so another one was obtained",
            hint="unset the variable, or set it to a valid token",
        )


def _naming_the_variable(session: Session, error: ClientRefused) -> ClientRefused:
    """The error for a secret from the environment, which no login corrects."""
    return ClientRefused(
        error.detail,
        refused="the secret in DKIMCTL_CLIENT_SECRET",
        hint="set the variable to the secret of the client ID "
        f"{session.account.client_id}, or unset it and run `dkimctl login`",
    )
