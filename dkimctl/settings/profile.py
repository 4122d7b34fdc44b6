"""The profile that a command works with, put together from all its sources."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.settings.config import Config
from dkimctl.settings.values import CHECKS, SANDBOX, SANDBOX_FIXED, checked, profile_name

SANDBOX_CLIENT_ID = SANDBOX_FIXED["client_id"]

DEFAULT_PROFILE = "default"  # the profile's name where none is named

_IN_ENVIRONMENT = ("auth_url", "base_url", "client_id")


class Profile(NamedTuple):
    """What a command needs to know of a service and a client. Durations are in seconds.

    `defaults` are spec fields for entries that do not state them. None: no source tells.
    """

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
    credential_store: Literal["keyring", "file"] = "keyring"
    defaults: Mapping[str, object] = {}

    @property
    def is_sandbox(self) -> bool:
        return self.name == SANDBOX


def resolve_profile(
    *,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    config: Config,
    logins: Mapping[str, Mapping[str, str]],
    may_be_new: bool = False,
) -> Profile:
    """Flag > environment > config > what `login` was told > default, for every key.

    `flags` holds options by profile key, and `profile` and `sandbox`; None is not given.
    Raises UsageError for a wrong value, or an unknown profile unless it `may_be_new`.
    """
    name = _name(flags, environ, config)
    from_flags = _from_flags(flags)
    from_config = config.profiles.get(name, {})
    if name == SANDBOX:
        _refuse_fixed(from_flags)
        # One request has all processors make keys: more of them would only take longer each.
        one = {"concurrency": 1}
        return Profile(name, **{**one, **from_config, **from_flags, **SANDBOX_FIXED})
    told = {**_from_environment(environ), **from_flags}
    if not may_be_new and "auth_url" not in told and "base_url" not in told:
        _refuse_unknown(name, {DEFAULT_PROFILE, SANDBOX, *config.profiles, *logins})
    return Profile(name, **{**logins.get(name, {}), **from_config, **told})


def require_account(profile: Profile) -> tuple[str, str, str]:
    """Its (auth_url, base_url, client_id). Raises UsageError where one is missing."""
    return (
        _required(profile, "auth_url"),
        _required(profile, "base_url"),
        _required(profile, "client_id"),
    )


def require_ledger_account(profile: Profile) -> tuple[str, str]:
    """Its (base_url, client_id), by which the ledger is kept. Raises UsageError."""
    return _required(profile, "base_url"), _required(profile, "client_id")


def profiles_with(
    login: Mapping[str, str], config: Config, logins: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Those profiles that use these credentials, by the config file and earlier logins."""
    default = {"credential_store": Profile._field_defaults["credential_store"]}
    found = []
    for name in {**logins, **config.profiles}:
        known = {**default, **logins.get(name, {}), **config.profiles.get(name, {})}
        if all(known.get(key) == value for key, value in login.items()):
            found.append(name)
    return found


def _name(flags: Mapping[str, Any], environ: Mapping[str, str], config: Config) -> str:
    if flags.get("sandbox"):
        if flags.get("profile") not in {None, SANDBOX}:
            raise UsageError("--sandbox and --profile name two profiles", hint="give one of them")
        return SANDBOX
    if flags.get("profile") is not None:
        return _checked_name(flags["profile"], "--profile")
    if variable := environ.get("DKIMCTL_PROFILE"):
        return _checked_name(variable, "DKIMCTL_PROFILE")
    return config.default_profile or DEFAULT_PROFILE


def _checked_name(text: str, source: str) -> str:
    try:
        return profile_name(text)
    except UsageError as error:
        raise UsageError(f"in {source}: {error.message}", hint=error.hint) from None


def _from_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: checked(key, str(flags[key]), f"--{key.replace('_', '-')}")
        for key in CHECKS
        if flags.get(key) is not None
    }


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    variables = {key: f"DKIMCTL_{key.upper()}" for key in _IN_ENVIRONMENT}
    return {
        key: checked(key, environ[variable], variable)
        for key, variable in variables.items()
        if environ.get(variable)
    }


def _refuse_fixed(from_flags: Mapping[str, Any]) -> None:
    for key in SANDBOX_FIXED:
        if key in from_flags:
            option = key.replace("_", "-")
            raise UsageError(f"--{option} of the sandbox is fixed", hint=f"leave --{option} out")


def _refuse_unknown(name: str, known: set[str]) -> None:
    if name not in known:
        raise UsageError(
            f"there is no profile {name}; known are {', '.join(sorted(known))}",
            hint=f"make it: dkimctl login --profile {name} --auth-url URL --base-url URL",
        )


def _required(profile: Profile, key: str) -> str:
    value: str | None = getattr(profile, key)
    if value is None:
        option = key.replace("_", "-")
        raise UsageError(
            f"the profile {profile.name} has no {key}",
            hint=f"run `dkimctl login`, or give --{option} or DKIMCTL_{key.upper()}; "
            "--sandbox works without an account",
        )
    return value
