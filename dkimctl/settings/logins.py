"""What `login` was told about each profile: no secrets, one small file in the state directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkimctl.errors import UsageError
from dkimctl.files import locked, read_regular, replace_text
from dkimctl.settings.values import checked
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    from dkimctl.settings.profile import Profile

_LARGEST = 16 * 1024 * 1024  # bytes; a login has some 200
LOGIN_KEYS = ("auth_url", "base_url", "client_id", "credential_store")


def logins(state_dir: Path) -> dict[str, dict[str, str]]:
    """By profile name: auth_url, base_url, client_id and credential_store.

    Raises UsageError if the file is unreadable or damaged.
    """
    path = _path(state_dir)
    try:
        data = read_regular(path, _LARGEST)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be read") from None
    return _parse(data, path)


@contextmanager
def logins_lock(state_dir: Path) -> Iterator[None]:
    """Keep other processes from changing logins, and from keeping secrets for them.

    Raises UsageError where another holds on to it, or the state directory cannot be used.
    """
    path = _path(state_dir)
    try:
        with locked(path):
            yield
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be written") from None


def write_logins(state_dir: Path, logins: Mapping[str, Mapping[str, str]]) -> None:
    """Keep these logins, and no others. Raises UsageError if it cannot."""
    import json

    path = _path(state_dir)
    try:
        replace_text(path, json.dumps(logins, indent=1))
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be written") from None


def login_of(profile: Profile) -> dict[str, str]:
    """What is kept of a profile that is logged in."""
    return {key: getattr(profile, key) for key in LOGIN_KEYS}


def _path(state_dir: Path) -> Path:
    return state_dir / "logins.json"


def _parse(data: bytes, path: Path) -> dict[str, dict[str, str]]:
    import json

    try:
        return {name: _login(told, path) for name, told in json.loads(data).items()}
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
        raise _unusable(path, "its content is damaged") from None


def _login(told: Mapping[str, Any], path: Path) -> dict[str, str]:
    return {key: str(checked(key, told[key], str(path))) for key in LOGIN_KEYS}


def _unusable(path: Path, reason: str) -> UsageError:
    message = f"cannot use {printable(str(path))}: {reason}"
    return UsageError(message, hint="correct or remove the file, then log in again")
