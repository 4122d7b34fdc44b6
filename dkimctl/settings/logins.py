"""What `login` was told about each profile: no secrets, one small file in the state directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkimctl.errors import UsageError
from dkimctl.settings.values import checked
from dkimctl.text import printable

if TYPE_CHECKING:
    from dkimctl.settings.profile import Profile

LOGIN_KEYS = ("auth_url", "base_url", "client_id", "credential_store")


def logins(state_dir: Path) -> dict[str, dict[str, str]]:
    """By profile name: auth_url, base_url, client_id and credential_store.

    Raises UsageError if the file is unreadable or damaged.
    """
    path = _path(state_dir)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be read") from None
    return _parse(data, path)


def remember_login(state_dir: Path, profile: Profile) -> None:
    """Keeps what the profile is, for later commands. Raises UsageError if it cannot."""
    import json

    from dkimctl.files import locked, replace_text

    path = _path(state_dir)
    told = {key: getattr(profile, key) for key in LOGIN_KEYS}
    try:
        with locked(path):
            known = logins(state_dir) | {profile.name: told}
            replace_text(path, json.dumps(known, indent=1))
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be written") from None


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
