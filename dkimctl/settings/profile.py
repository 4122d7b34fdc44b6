"""The profile that a command uses, and which source of each of its settings wins.

The profile's name is an option, else in the environment, else in the config file, else what
`profile use` chose, else the default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dkimctl import files
from dkimctl.errors import UsageError, naming
from dkimctl.settings import values
from dkimctl.text import listed, printable

if TYPE_CHECKING:
    from dkimctl.settings.config import Config

Login = Mapping[str, str]  # LOGIN_KEYS; URLs may not be in canonical form
Logins = Mapping[str, Login]  # by profile name

DEFAULT_PROFILE = "default"  # used if no source names another
SANDBOX_CLIENT_ID = values.SANDBOX_FIXED["client_id"]
LOGIN_KEYS = ("auth_url", "base_url", "client_id", "credential_store")
_LOGINS = "logins.json"
_UNUSED = "(unused)"  # not the name of a profile


class Profile(NamedTuple):
    """The settings for one service and client, in seconds. None: no source sets the key."""

    name: str
    auth_url: str | None = None
    base_url: str | None = None
    client_id: str | None = None
    batch_size: int = 50
    concurrency: int = 8
    timeout: float = 30.0  # above the 29 s after which an API gateway answers 504
    max_wait: float = 300.0
    ca_bundle: str | None = None
    proxy: str | None = None
    ledger: str | None = None  # the URL of a PostgreSQL database; None: a file of this machine
    credential_store: Literal["keyring", "file"] = "keyring"
    defaults: Mapping[str, object] = {}  # spec fields for entries without them

    @property
    def is_sandbox(self) -> bool:
        return self.name == values.SANDBOX


class SourceKind(StrEnum):
    """The sources of settings, in the order of precedence."""

    OPTION = "option"
    ENVIRONMENT = "environment"
    CONFIG = "config"
    PROFILE_USE = "profile use"  # of the profile's name only
    LOGIN = "login"  # of a profile's values only
    DEFAULT = "default"


class SetBy(NamedTuple):
    """Where a setting comes from."""

    kind: SourceKind
    name: str = ""  # the option, the variable or the path of the config file

    def __str__(self) -> str:
        words = {SourceKind.ENVIRONMENT: "environment variable", SourceKind.CONFIG: "config file"}
        return f"{words.get(self.kind, self.kind)} {self.name}".rstrip()


DEFAULT = SetBy(SourceKind.DEFAULT)
LOGIN = SetBy(SourceKind.LOGIN)


def option(key: str) -> SetBy:
    return SetBy(SourceKind.OPTION, f"--{key.replace('_', '-')}")


def variable(key: str) -> SetBy:
    return SetBy(SourceKind.ENVIRONMENT, f"DKIMCTL_{key.upper()}")


class Settings(NamedTuple):
    """A profile, and the source of its name (by the key `profile`) and of each of its keys."""

    profile: Profile
    sources: Mapping[str, SetBy]


class Sources(NamedTuple):
    """What settings are taken from."""

    flags: Mapping[str, Any]  # the options by key, and `profile` and `sandbox`; None: not given
    environ: Mapping[str, str]
    config: Config
    config_file: str
    logins: Logins
    state_dir: Path


def resolve_settings(sources: Sources, *, may_be_new: bool = False) -> Settings:
    """Resolve every key: option > environment > config file > login > default.

    Raises UsageError for an invalid value, and for an unknown profile unless it `may_be_new`.
    """
    flags, environ, config, config_file, logins, _ = sources
    name, source = resolve_name(sources)
    from_flags = {
        key: values.parse_value(key, str(flags[key]), option(key).name)
        for key in values.CHECKS
        if flags.get(key) is not None
    }
    # From the lowest to the highest.
    layers: list[tuple[Mapping[str, Any], SetBy | Callable[[str], SetBy]]] = [
        (config.profiles.get(name, {}), SetBy(SourceKind.CONFIG, config_file)),
        (from_flags, option),
    ]
    if name == values.SANDBOX:
        for key in values.SANDBOX_FIXED:
            if key in from_flags:
                fixed = option(key).name
                raise UsageError(f"{fixed} of the sandbox is fixed", hint=f"omit {fixed}")
        # One request keeps all processors busy making keys; several would each take longer.
        layers = [({"concurrency": 1}, DEFAULT), *layers, (values.SANDBOX_FIXED, DEFAULT)]
    else:
        from_environment = {
            key: values.parse_value(key, environ[variable(key).name], variable(key).name)
            for key in ("auth_url", "base_url", "client_id", "ledger")
            if environ.get(variable(key).name)
        }
        layers = [(settings_of(logins.get(name, {})), LOGIN), *layers]
        layers.insert(2, (from_environment, variable))
        if not may_be_new and not {"auth_url", "base_url"} & {*from_flags, *from_environment}:
            require_known(name, known_profiles(config, logins), source)
    settings: dict[str, Any] = {}
    set_by = {"profile": source, **dict.fromkeys(Profile._fields[1:], DEFAULT)}
    for given, setter in layers:
        settings |= given
        set_by |= {key: setter(key) if callable(setter) else setter for key in given}
    return Settings(Profile(name, **settings), set_by)


def resolve_name(sources: Sources) -> tuple[str, SetBy]:
    """The name of the profile, and its source. Raises UsageError if it is invalid."""
    flags, given = sources.flags, sources.flags.get("profile")
    if flags.get("sandbox"):
        if given not in {None, values.SANDBOX}:
            message = "--sandbox and --profile name two profiles"
            raise UsageError(message, hint="give only one of them")
        return values.SANDBOX, option("sandbox")
    exported = sources.environ.get(variable("profile").name) or None
    for text, source in ((given, option("profile")), (exported, variable("profile"))):
        if text is not None:
            with naming(source.name):
                return values.profile_name(text), source
    if name := sources.config.default_profile:
        return name, SetBy(SourceKind.CONFIG, sources.config_file)
    if name := read_used_profile(sources.state_dir):
        return name, SetBy(SourceKind.PROFILE_USE)
    return DEFAULT_PROFILE, DEFAULT


def require_known(name: str, known: Sequence[str], source: SetBy | None = None) -> None:
    """Raise UsageError if the profile is none of the `known` ones."""
    if name not in known:
        shown, what = (name, f" {name}") if values.is_shown(name) else ("NAME", "")
        where = "" if source is None or source.kind is SourceKind.OPTION else f" ({source})"
        hint = "choose one with --profile or `dkimctl profile use NAME`, or create it with "
        message = f"unknown profile{what}{where}; known profiles: {listed(known)}"
        raise UsageError(message, hint=f"{hint}`dkimctl login --profile {shown}`")


def exported_proxy(environ: Mapping[str, str]) -> tuple[str, SetBy] | None:
    """The proxy that requests use if no setting names one, without its password, if any.

    The HTTP library reads these variables (not for plain HTTP, which is for loopback only).
    """
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        if text := environ.get(name):
            shown = re.sub(r"\A([A-Za-z0-9]+://)?.*@", r"\1***@", text, flags=re.DOTALL)
            return shown, SetBy(SourceKind.ENVIRONMENT, name)
    return None


def require_account(profile: Profile) -> tuple[str, str, str]:
    """The (auth_url, base_url, client_id) of a profile. Raises UsageError if one is missing."""
    return (_required(profile, "auth_url"), *require_ledger_account(profile))


def require_ledger_account(profile: Profile) -> tuple[str, str]:
    """The (base_url, client_id) of a profile's part of the ledger. Raises UsageError."""
    return _required(profile, "base_url"), _required(profile, "client_id")


def _required(profile: Profile, key: str) -> str:
    value: str | None = getattr(profile, key)
    if value is None:
        what = f"the profile {profile.name} has no account yet ({key} is not set)"
        hint = "run `dkimctl login`; --sandbox works without an account"
        raise UsageError(f"not logged in: {what}", hint=hint)
    return value


def profiles_with(login: Login, config: Config, logins: Logins) -> list[str]:
    """The names of the profiles that use the credentials of `login`."""
    return [
        name
        for name in {**logins, **config.profiles}
        if login.items() <= stored_settings(name, config, logins).items()
    ]


def stored_settings(name: str, config: Config, logins: Logins) -> dict[str, Any]:
    """What the config file and the login of a profile set, whatever options and environment say."""
    default = {"credential_store": Profile._field_defaults["credential_store"]}
    return {**default, **logins.get(name, {}), **config.profiles.get(name, {})}


def known_profiles(config: Config, logins: Mapping[str, object]) -> list[str]:
    """The names of all profiles, of which two always exist."""
    return sorted({DEFAULT_PROFILE, values.SANDBOX, *config.profiles, *logins})


def read_logins(state_dir: Path) -> tuple[dict[str, dict[str, str]], list[dict[str, str]]]:
    """Each login by profile name, and those that no profile has any more. Raises UsageError.

    The secrets of the latter may still be stored. URLs may not be in canonical form.
    """
    path = state_dir / _LOGINS
    if (data := _read_file(path, 16 << 20)) is None:  # bytes; a login has about 200
        return {}, []

    def checked(login: Mapping[str, Any]) -> dict[str, str]:
        for key in LOGIN_KEYS:
            values.parse_value(key, login[key], str(path))
        return {key: str(login[key]) for key in LOGIN_KEYS}

    try:
        content = json.loads(data)
        unused = [checked(login) for login in content.pop(_UNUSED, ())]
        logins = {name: checked(login) for name, login in content.items()}
        if not all(map(values.is_profile_name, logins)):  # they are shown, completed and typed
            raise ValueError
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
        raise _unusable(path, "the file is damaged") from None
    return logins, unused


@contextmanager
def logins_lock(state_dir: Path) -> Iterator[None]:
    """Keep other processes from changing logins and secrets. Raises UsageError."""
    path = state_dir / _LOGINS
    with _usable(path):
        files.prepare_directory(state_dir)
        files.refuse(files.fault_of(path, files.lock_file_of(path)), UsageError)
        with files.locked(path):
            files.delete_leftovers(path)
            yield


def write_logins(state_dir: Path, logins: Logins, unused: Sequence[Login] = ()) -> None:
    """Replace all logins with these, and those that no profile has any more. Raises UsageError."""
    path = state_dir / _LOGINS
    content = {**logins, _UNUSED: unused} if unused else logins
    with _usable(path):
        files.write_private(path, json.dumps(content, indent=1))


def login_of(profile: Profile) -> dict[str, str]:
    """The login to store for a profile."""
    return {key: getattr(profile, key) for key in LOGIN_KEYS}


def settings_of(login: Login) -> dict[str, object]:
    """The settings of a stored login: its URLs in canonical form."""
    return {key: values.parse_value(key, text, "logins.json") for key, text in login.items()}


def stored_login(profile: Profile, logins: Logins) -> Login:
    """The login with whose URLs, as they are written, the credentials of a profile are stored.

    The profile's own or, if it has none, another one with the same settings.
    """
    login = login_of(profile)
    exact = [login] if login in logins.values() else []
    candidates = [logins.get(profile.name, {}), *exact, *logins.values()]
    return next((stored for stored in candidates if settings_of(stored) == login), login)


def read_used_profile(state_dir: Path) -> str | None:
    """The name that `profile use` chose, or None. Raises UsageError, also for a damaged file."""
    path = state_dir / "profile"
    if (data := _read_file(path, 4096)) is None:  # bytes
        return None
    name = data.decode("ascii", "replace").strip()
    if not values.is_profile_name(name):
        raise _unusable(path, "the file is damaged")
    return name


def write_used_profile(state_dir: Path, name: str | None) -> None:
    """Replace the name; None removes it. The caller holds `logins_lock`. Raises UsageError."""
    path = state_dir / "profile"
    with _usable(path):
        files.delete_leftovers(path)
        if name is None:
            path.unlink(missing_ok=True)
        else:
            files.write_private(path, f"{name}\n")


def _read_file(path: Path, largest: int) -> bytes | None:
    with _usable(path), suppress(FileNotFoundError):
        return files.read_safe(path, largest, UsageError)
    return None


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """Turn an OSError into a UsageError that names the file."""
    try:
        yield
    except OSError as error:
        unusable = _unusable(path, error.strerror or "cannot be used")
        if isinstance(error, NotADirectoryError):
            unusable.hint = "set DKIMCTL_STATE_DIR to a directory"
        elif isinstance(error, PermissionError):
            unusable.hint = files.access_hint(path, unusable.hint)
        raise unusable from None


def _unusable(path: Path, reason: str) -> UsageError:
    command = "profile use NAME" if path.name == "profile" else "login"
    hint = f"fix or delete it, then run `dkimctl {command}` again"
    return UsageError(f"cannot use {printable(str(path))}: {reason}", hint=hint)
