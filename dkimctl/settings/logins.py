"""What is remembered of logins, in the state directory: never a secret.

`logins.json` has the URLs and client ID of each login. One is there before its secret is stored,
and until its secret is deleted, so that `logout` finds all secrets, also after a kill. `profile`
has the name of the profile that `profile use` chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkimctl.errors import UsageError
from dkimctl.settings.values import is_profile_name, parse_value
from dkimctl.system.directories import prepare_directory
from dkimctl.system.files import delete_leftovers, lock_file_of, locked, write_private
from dkimctl.system.ownership import fault_of, read_safe, refuse
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    from dkimctl.settings.profile import Profile

LOGIN_KEYS = ("auth_url", "base_url", "client_id", "credential_store")
_UNUSED = "(unused)"  # not the name of a profile


def read_logins(state_dir: Path) -> dict[str, dict[str, str]]:
    """Each login by profile name, with LOGIN_KEYS; its URLs may not be in canonical form.

    Raises UsageError if the file cannot be read or is damaged, or if other users can change it.
    """
    return _read(state_dir)[0]


def read_unused_logins(state_dir: Path) -> list[dict[str, str]]:
    """Logins that no profile has any more, whose secrets may be stored. Raises UsageError."""
    return _read(state_dir)[1]


@contextmanager
def logins_lock(state_dir: Path) -> Iterator[None]:
    """Prevent other processes from changing the logins and their secrets.

    Creates a missing state directory. Raises UsageError if another process holds the lock, or the
    directory cannot be used.
    """
    path = _path(state_dir)
    try:
        prepare_directory(state_dir)
        refuse(fault_of(path, lock_file_of(path)), UsageError)
        with locked(path):
            delete_leftovers(path)
            yield
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be written") from None


def write_logins(
    state_dir: Path,
    logins: Mapping[str, Mapping[str, str]],
    unused: Sequence[Mapping[str, str]] = (),
) -> None:
    """Replace all logins with these, and those that no profile has any more. Raises UsageError."""
    import json

    path = _path(state_dir)
    content = {**logins, _UNUSED: unused} if unused else logins
    try:
        write_private(path, json.dumps(content, indent=1))
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be written") from None


def login_of(profile: Profile) -> dict[str, str]:
    """The login to store for a profile."""
    return {key: getattr(profile, key) for key in LOGIN_KEYS}


def settings_of(login: Mapping[str, str]) -> dict[str, object]:
    """The settings of a stored login: its URLs in canonical form."""
    return {key: parse_value(key, text, "logins.json") for key, text in login.items()}


def stored_login(profile: Profile, logins: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The login with whose URLs, as they are written, the credentials of a profile are stored.

    The profile's own or, if it has none, another one with the same settings.
    """
    login = login_of(profile)
    exact = [login] if login in logins.values() else []
    candidates = [logins.get(profile.name, {}), *exact, *logins.values()]
    return next((stored for stored in candidates if settings_of(stored) == login), login)


def read_used_profile(state_dir: Path) -> str | None:
    """The name of the profile that `profile use` chose, or None.

    Raises UsageError if the file cannot be read or is damaged, or if other users can change it.
    """
    path = state_dir / "profile"
    data = _read_file(path, 4096)  # bytes
    if data is None:
        return None
    name = data.decode("ascii", "replace").strip()
    if not is_profile_name(name):
        raise _unusable(path, "the file is damaged")
    return name


def write_used_profile(state_dir: Path, name: str | None) -> None:
    """Replace the name; None removes it. The caller holds `logins_lock`. Raises UsageError."""
    path = state_dir / "profile"
    try:
        delete_leftovers(path)
        if name is None:
            path.unlink(missing_ok=True)
        else:
            write_private(path, f"{name}\n")
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be written") from None


def _path(state_dir: Path) -> Path:
    return state_dir / "logins.json"


def _read(state_dir: Path) -> tuple[dict[str, dict[str, str]], list[dict[str, str]]]:
    path = _path(state_dir)
    data = _read_file(path, 16 << 20)  # bytes; a login has about 200
    if data is None:
        return {}, []
    import json

    try:
        content = json.loads(data)
        unused = [_checked(login, path) for login in content.pop(_UNUSED, ())]
        logins = {name: _checked(login, path) for name, login in content.items()}
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
        raise _unusable(path, "the file is damaged") from None
    if not all(map(is_profile_name, logins)):  # they are shown, completed and typed
        raise _unusable(path, "the file is damaged")
    return logins, unused


def _read_file(path: Path, largest: int) -> bytes | None:
    try:
        return read_safe(path, largest, UsageError)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error.strerror or "cannot be read") from None


def _checked(login: Mapping[str, Any], path: Path) -> dict[str, str]:
    for key in LOGIN_KEYS:
        parse_value(key, login[key], str(path))
    return {key: str(login[key]) for key in LOGIN_KEYS}


def _unusable(path: Path, reason: str) -> UsageError:
    command = "profile use NAME" if path.name == "profile" else "login"
    return UsageError(
        f"cannot use {printable(str(path))}: {reason}",
        hint=f"fix or delete it, then run `dkimctl {command}` again",
    )
