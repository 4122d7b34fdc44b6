"""An account, and the form its secret and tokens must have to fit into an HTTP header."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret, require_client_id

_SECRET = re.compile(r"[ -~\u00a0-\u00ff]+")
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Account:
    """What credentials belong to: a client ID at an authorization host and a service host.

    Raises CredentialsError for a client ID that HTTP Basic cannot carry (RFC 7617 section 2).
    """

    auth_url: str
    base_url: str
    client_id: str

    def __post_init__(self) -> None:
        require_client_id(self.client_id, CredentialsError)


def parse_secret(text: Secret, source: str) -> Secret | None:
    """The client secret in `text`, without one trailing newline, or None if there is none.

    `source` names its origin in errors. Raises CredentialsError, which never quotes the text, for
    a control character (RFC 7617 section 2) or one outside Latin-1.
    """
    return _parse(text, _SECRET, f"{source} contains a control character or one outside Latin-1")


def parse_token(text: Secret, source: str) -> Secret | None:
    """The access token in `text`, without one trailing newline, or None if there is none.

    `source` names its origin in errors. Raises CredentialsError, which never quotes the text, for
    a character not allowed in a bearer token (RFC 6750 section 2.1).
    """
    return _parse(text, _TOKEN, f"{source} contains a character that no access token has")


def _parse(text: Secret, allowed: re.Pattern[str], message: str) -> Secret | None:
    stripped = Secret(re.sub(r"\r?\n\Z", "", text.reveal()))
    if not stripped.reveal():
        return None
    if not allowed.fullmatch(stripped.reveal()):
        raise CredentialsError(message, hint="give it exactly as the service issued it")
    return stripped
