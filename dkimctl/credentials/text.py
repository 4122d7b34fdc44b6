"""Secrets and tokens as people hand them over: text that an HTTP header can carry."""

from __future__ import annotations

import re

from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret

_SECRET = re.compile(r"[ -~\u00a0-\u00ff]+")
_TOKEN = re.compile(r"[!-~]+")


def parse_secret(text: Secret, source: str) -> Secret | None:
    """The secret key in `text`, less one trailing newline; None where there is none.

    `source` names where it was found. Raises CredentialsError for a control character
    (RFC 7617 section 2) or one outside Latin-1; the error never quotes the text.
    """
    return _parse(text, _SECRET, f"{source} holds a control character or one outside Latin-1")


def parse_token(text: Secret, source: str) -> Secret | None:
    """The access token in `text`, less one trailing newline; None where there is none.

    `source` names where it was found. Raises CredentialsError for a character that a
    bearer token cannot hold (RFC 6750 section 2.1); the error never quotes the text.
    """
    return _parse(text, _TOKEN, f"{source} holds a character that no access token has")


def _parse(text: Secret, allowed: re.Pattern[str], complaint: str) -> Secret | None:
    bare = Secret(re.sub(r"\r?\n\Z", "", text.reveal()))
    if not bare.reveal():
        return None
    if not allowed.fullmatch(bare.reveal()):
        raise CredentialsError(complaint, hint="give it exactly as the service handed it out")
    return bare
