"""What each key of a profile may be: from its text, whatever source it comes from.

A check returns the value or raises UsageError, and its caller names the source. No value is
quoted but a profile's name: what stands in the wrong place may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from dkimctl.errors import UsageError
from dkimctl.settings.urls import proxy_url, service_url
from dkimctl.text.durations import DAY, parse_duration
from dkimctl.text.wording import shown

Check = Callable[[str], object]

SANDBOX = "sandbox"  # the embedded service's profile, which always exists
SANDBOX_FIXED: Mapping[str, str] = {
    "auth_url": "https://sandbox.invalid",
    "base_url": "https://sandbox.invalid",
    "client_id": "sandbox",
    "credential_store": "file",
}

# Compiled when they are first used: no command needs them all.
_NAME = r"[A-Za-z0-9._-]+"
_INTEGER = r"[0-9]{1,9}"
_NOT_IN_CLIENT_ID = r"[:\0-\x1f\x7f-\x9f\ud800-\udfff]"  # RFC 7617 section 2


def profile_name(text: str) -> str:
    if not re.fullmatch(_NAME, text):
        hint = "use letters, digits, dots, hyphens and underscores"
        raise UsageError(f"{shown(text)} is no profile name", hint=hint)
    return text


def _integer(lowest: int, highest: int) -> Check:
    def check(text: str) -> int:
        if re.fullmatch(_INTEGER, text) and lowest <= int(text) <= highest:
            return int(text)
        hint = f"write a whole number from {lowest} to {highest}"
        raise UsageError("the value is out of range or no number", hint=hint)

    return check


def _duration(text: str) -> float:
    try:
        return parse_duration(text, longest=DAY)
    except UsageError as error:
        raise UsageError("the value is no length of time", hint=error.hint) from None


def _client_id(text: str) -> str:
    if not text or re.search(_NOT_IN_CLIENT_ID, text):
        raise UsageError(
            "the client ID is empty, or holds a colon or control character",
            hint="give the client ID alone, without the secret",
        )
    return text


def _credential_store(text: str) -> str:
    if text not in {"keyring", "file"}:
        raise UsageError("the value is no credential store", hint="write keyring or file")
    return text


def _path(text: str) -> str:
    try:
        return str(Path(text).expanduser())
    except RuntimeError:
        raise UsageError("the path names an unknown home", hint="write the path") from None


# In the order in which they are documented; `defaults` is no single value.
CHECKS: Mapping[str, Check] = {
    "auth_url": service_url,
    "base_url": service_url,
    "client_id": _client_id,
    "batch_size": _integer(1, 10_000),
    "concurrency": _integer(1, 64),
    "timeout": _duration,
    "max_wait": _duration,
    "ca_bundle": _path,
    "proxy": proxy_url,
    "credential_store": _credential_store,
}


def checked(key: str, text: str, source: str) -> object:
    """The value of `key`; UsageError names the `source`, such as `--batch-size`."""
    try:
        return CHECKS[key](text)
    except UsageError as error:
        raise UsageError(f"in {source}: {error.message}", hint=error.hint) from None
