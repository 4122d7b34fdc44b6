"""Which source of a setting wins: option, environment, config file, login, default."""

from collections.abc import Mapping
from typing import Any

from dkimctl.errors import UsageError, naming
from dkimctl.settings.config import Config
from dkimctl.settings.logins import settings_of
from dkimctl.settings.profile import DEFAULT_PROFILE, Profile
from dkimctl.settings.values import CHECKS, SANDBOX, SANDBOX_FIXED, parse_value, profile_name

_IN_ENVIRONMENT = ("auth_url", "base_url", "client_id")


def resolve_profile(
    *,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    config: Config,
    logins: Mapping[str, Mapping[str, str]],
    may_be_new: bool = False,
) -> Profile:
    """Resolve every key: option > environment > config file > login > default.

    `flags` has the options by profile key, and `profile` and `sandbox`; None means not given.
    Raises UsageError for an invalid value, and for an unknown profile unless it `may_be_new`.
    """
    name = _name(flags, environ, config)
    from_flags = _from_flags(flags)
    from_config = config.profiles.get(name, {})
    if name == SANDBOX:
        _refuse_fixed(from_flags)
        # One request keeps all processors busy making keys; several would each take longer.
        default = {"concurrency": 1}
        return Profile(name, **{**default, **from_config, **from_flags, **SANDBOX_FIXED})
    given = {**_from_environment(environ), **from_flags}
    if not may_be_new and "auth_url" not in given and "base_url" not in given:
        _require_known(name, {DEFAULT_PROFILE, SANDBOX, *config.profiles, *logins})
    return Profile(name, **{**settings_of(logins.get(name, {})), **from_config, **given})


def _name(flags: Mapping[str, Any], environ: Mapping[str, str], config: Config) -> str:
    if flags.get("sandbox"):
        if flags.get("profile") not in {None, SANDBOX}:
            raise UsageError(
                "--sandbox and --profile name two profiles", hint="give only one of them"
            )
        return SANDBOX
    if flags.get("profile") is not None:
        return _profile_name(flags["profile"], "--profile")
    if variable := environ.get("DKIMCTL_PROFILE"):
        return _profile_name(variable, "DKIMCTL_PROFILE")
    return config.default_profile or DEFAULT_PROFILE


def _profile_name(text: str, source: str) -> str:
    with naming(source):
        return profile_name(text)


def _from_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: parse_value(key, str(flags[key]), f"--{key.replace('_', '-')}")
        for key in CHECKS
        if flags.get(key) is not None
    }


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    variables = {key: f"DKIMCTL_{key.upper()}" for key in _IN_ENVIRONMENT}
    return {
        key: parse_value(key, environ[variable], variable)
        for key, variable in variables.items()
        if environ.get(variable)
    }


def _refuse_fixed(from_flags: Mapping[str, Any]) -> None:
    for key in SANDBOX_FIXED:
        if key in from_flags:
            option = key.replace("_", "-")
            raise UsageError(f"--{option} of the sandbox is fixed", hint=f"omit --{option}")


def _require_known(name: str, known: set[str]) -> None:
    if name not in known:
        raise UsageError(
            f"unknown profile {name}; known profiles: {', '.join(sorted(known))}",
            hint=f"create it: dkimctl login --profile {name} --auth-url URL --base-url URL",
        )
