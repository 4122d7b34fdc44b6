"""What `login` was told about each profile: no secrets, one small file in the state directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkimctl.errors import UsageError
from dkimctl.files import locked, read_regular, replace_text
from dkimctl.settings.values import checked
from dkimctl.text import printable

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


def remember_login(state_dir: Path, profile: Profile) -> dict[str, dict[str, str]]:
    """Keeps what the profile is, for later commands, and gives all logins as they were before.

    Raises UsageError if it cannot.
    """
    import json

    path = _path(state_dir)
    told = {key: getattr(profile, key) for key in LOGIN_KEYS}
    try:
        with locked(path):
            before = logins(state_dir)
            replace_text(path, json.dumps(before | {profile.name: told}, indent=1))
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be written") from None
    return before


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
