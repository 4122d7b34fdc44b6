"""The valid values of each profile key, from wherever, and references to secrets.

A check converts text to a value or raises UsageError; its caller names the source. Only a profile
name is ever quoted, and no long one: any other text may be a secret in the wrong place, or contain
a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from dkimctl.addresses import is_loopback, parse_database_url, parse_url
from dkimctl.errors import UsageError, naming
from dkimctl.text import DAY, parse_duration

Check = Callable[[str], object]

SANDBOX = "sandbox"  # the profile of the embedded service, which always exists
SANDBOX_FIXED: Mapping[str, str] = {
    "auth_url": "https://sandbox.invalid",
    "base_url": "https://sandbox.invalid",
    "client_id": "sandbox",
    "credential_store": "file",
}

# Compiled on first use: no command needs all of them.
_NAME = r"[A-Za-z0-9._-]+"
_MAX_SHOWN = 30  # characters of an unknown profile's name; secrets have more
_REFERENCE = r"env/[A-Za-z_][A-Za-z0-9_]{0,199}|keyring/[A-Za-z0-9_.@+/-]{1,200}"
REFERENCE_HINT = (
    "write env/NAME for an environment variable, or keyring/NAME for an entry of the keyring"
)


def is_profile_name(text: str) -> bool:
    return re.fullmatch(_NAME, text) is not None


def is_shown(name: str) -> bool:
    """Whether messages quote the name of an unknown profile: -p means a password elsewhere."""
    return is_profile_name(name) and len(name) <= _MAX_SHOWN


def matching(pattern: str, message: str, hint: str) -> Callable[[str], str]:
    """The check of text that a pattern matches as a whole."""

    def check(text: str) -> str:
        if re.fullmatch(pattern, text):
            return text
        raise UsageError(message, hint=hint)

    return check


profile_name = matching(
    _NAME, "invalid profile name", "use letters, digits, dots, hyphens and underscores"
)


def parse_value(key: str, text: str, source: str) -> object:
    """The value of `key`. The UsageError names the `source`, such as `--batch-size`."""
    with naming(source):
        return CHECKS[key](text)


def service_url(text: str) -> str:
    """An https URL, or an http URL of this machine, in canonical form."""
    url = parse_url(text)
    if url.scheme == "http" and not is_loopback(url.host):
        raise UsageError("http:// is allowed for loopback addresses only", hint="use https://...")
    return str(url)


def integer(lowest: int, highest: int) -> Check:
    """The check of a whole number in decimal digits."""

    def check(text: str) -> int:
        if re.fullmatch("[0-9]{1,10}", text) and lowest <= int(text) <= highest:
            return int(text)
        hint = f"write a whole number from {lowest} to {highest}"
        raise UsageError("the value is not a number, or out of range", hint=hint)

    return check


def short_duration(text: str) -> float:
    """Seconds, up to a day. Raises UsageError, which does not quote the text."""
    return parse_duration(text, longest=DAY)


def file_path(text: str) -> str:
    """A path whose `~` is expanded."""
    try:
        return str(Path(text).expanduser())
    except RuntimeError:
        raise UsageError("unknown home directory in the path", hint="write it out") from None


# In the order of the documentation. `defaults` is missing because it is not a single value.
CHECKS: Mapping[str, Check] = {
    "auth_url": service_url,
    "base_url": service_url,
    # One that HTTP Basic can carry (RFC 7617 section 2). Not quoted: people paste ID:SECRET here.
    "client_id": matching(
        r"[^:\0-\x1f\x7f-\x9f\ud800-\udfff]+",  # surrogates have no UTF-8
        "the client ID is empty, or contains a colon or a control character",
        "give only the client ID, without the secret",
    ),
    "batch_size": integer(1, 10_000),
    "concurrency": integer(1, 64),
    "timeout": short_duration,
    "max_wait": short_duration,
    "ca_bundle": file_path,
    "proxy": lambda text: str(parse_url(text, "http")),
    "ledger": parse_database_url,
    "credential_store": matching("keyring|file", "unknown store", "write keyring or file"),
}


def is_reference(text: str) -> bool:
    """Whether the text is a reference. Raises UsageError for one whose name is invalid."""
    if not text.startswith(("env/", "keyring/")):
        return False
    if not re.fullmatch(_REFERENCE, text):
        hint = "use letters, digits and _; in a name of the keyring also . - + @ and /"
        raise UsageError("the name after env/ or keyring/ is invalid", hint=hint)
    return True


def values_in(value: object) -> Iterator[object]:
    """The values in nested lists and mappings; of any other value, itself."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from values_in(inner)
    elif isinstance(value, list):
        for item in value:
            yield from values_in(item)
    else:
        yield value
