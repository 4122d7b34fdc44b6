"""Which source of a setting wins: option, environment, config file, login, default.

The profile's name is an option, else in the environment, else in the config file, else what
`profile use` chose, else the default.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dkimctl.errors import UsageError, naming
from dkimctl.settings.config import Config
from dkimctl.settings.logins import settings_of
from dkimctl.settings.profile import DEFAULT_PROFILE, Profile, known_profiles
from dkimctl.settings.sources import (
    DEFAULT,
    LOGIN,
    PROFILE_USE,
    Source,
    SourceKind,
    option,
    variable,
)
from dkimctl.settings.values import (
    CHECKS,
    SANDBOX,
    SANDBOX_FIXED,
    is_shown,
    parse_value,
    profile_name,
)
from dkimctl.text.grouping import listed

_IN_ENVIRONMENT = ("auth_url", "base_url", "client_id")
_TYPED = Source(SourceKind.OPTION)


class Settings(NamedTuple):
    """A profile, and the source of its name (by the key `profile`) and of each of its keys."""

    profile: Profile
    sources: Mapping[str, Source]


def resolve_settings(
    *,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    config: Config,
    logins: Mapping[str, Mapping[str, str]],
    config_file: str = "",
    used: Callable[[], str | None] = lambda: None,
    may_be_new: bool = False,
) -> Settings:
    """Resolve every key: option > environment > config file > login > default.

    `flags` has the options by profile key, and `profile` and `sandbox`; None means not given.
    `used` returns the profile that `profile use` chose, if any. Raises UsageError for an invalid
    value, and for an unknown profile unless it `may_be_new`.
    """
    name, source = resolve_name(
        flags=flags, environ=environ, config=config, config_file=config_file, used=used
    )
    from_flags = _from_flags(flags)
    config_source = Source(SourceKind.CONFIG, config_file)
    from_config = _sourced(config.profiles.get(name, {}), lambda _: config_source)
    if name == SANDBOX:
        _refuse_fixed(from_flags)
        # One request keeps all processors busy making keys; several would each take longer.
        lowest = _sourced({"concurrency": 1}, lambda _: DEFAULT)
        highest = _sourced(from_flags, option) | _sourced(SANDBOX_FIXED, lambda _: DEFAULT)
    else:
        from_environment = _from_environment(environ)
        if not may_be_new and not {"auth_url", "base_url"} & {*from_flags, *from_environment}:
            require_known(name, known_profiles(config, logins), source)
        lowest = _sourced(settings_of(logins.get(name, {})), lambda _: LOGIN)
        highest = _sourced(from_environment, variable) | _sourced(from_flags, option)
    resolved = lowest | from_config | highest
    sources = dict.fromkeys(Profile._fields[1:], DEFAULT)
    sources |= {key: found for key, (_, found) in resolved.items()}
    return Settings(
        Profile(name, **{key: value for key, (value, _) in resolved.items()}),
        {"profile": source, **sources},
    )


def resolve_name(
    *,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    config: Config,
    config_file: str = "",
    used: Callable[[], str | None] = lambda: None,
) -> tuple[str, Source]:
    """The name of the profile, and its source. Raises UsageError if it is invalid."""
    if flags.get("sandbox"):
        if flags.get("profile") not in {None, SANDBOX}:
            raise UsageError(
                "--sandbox and --profile name two profiles", hint="give only one of them"
            )
        return SANDBOX, option("sandbox")
    if flags.get("profile") is not None:
        return _profile_name(flags["profile"], option("profile"))
    if text := environ.get("DKIMCTL_PROFILE"):
        return _profile_name(text, variable("profile"))
    if config.default_profile:
        return config.default_profile, Source(SourceKind.CONFIG, config_file)
    if name := used():
        return name, PROFILE_USE
    return DEFAULT_PROFILE, DEFAULT


def exported_proxy(environ: Mapping[str, str]) -> tuple[str, Source] | None:
    """The proxy that requests use if no setting names one, without its password, if any.

    The HTTP library reads these variables (not for plain HTTP, which is for loopback only).
    """
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        if text := environ.get(name):
            shown = re.sub(r"\A([A-Za-z0-9]+://)?.*@", r"\1***@", text, flags=re.DOTALL)
            return shown, Source(SourceKind.ENVIRONMENT, name)
    return None


def _profile_name(text: str, source: Source) -> tuple[str, Source]:
    with naming(source.name):
        return profile_name(text), source


def _sourced(
    values: Mapping[str, Any], source_of: Callable[[str], Source]
) -> dict[str, tuple[Any, Source]]:
    return {key: (value, source_of(key)) for key, value in values.items()}


def _from_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: parse_value(key, str(flags[key]), option(key).name)
        for key in CHECKS
        if flags.get(key) is not None
    }


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    given = ((key, variable(key).name) for key in _IN_ENVIRONMENT)
    return {key: parse_value(key, environ[name], name) for key, name in given if environ.get(name)}


def _refuse_fixed(from_flags: Mapping[str, Any]) -> None:
    for key in SANDBOX_FIXED:
        if key in from_flags:
            name = option(key).name
            raise UsageError(f"{name} of the sandbox is fixed", hint=f"omit {name}")


def require_known(name: str, known: Sequence[str], source: Source = _TYPED) -> None:
    """Raise UsageError if the profile is none of the `known` ones."""
    if name in known:
        return
    where = "" if source.kind is SourceKind.OPTION else f" ({_cause(source)})"
    shown, what = (name, f" {name}") if is_shown(name) else ("NAME", "")
    raise UsageError(
        f"unknown profile{what}{where}; known profiles: {listed(known)}",
        hint=f"{_suggestion(shown, source, known)} `dkimctl login --profile {shown}`",
    )


def _cause(source: Source) -> str:
    return {
        SourceKind.ENVIRONMENT: f"in {source.name}",
        SourceKind.CONFIG: "default_profile of the config file",
        SourceKind.PROFILE_USE: "chosen with `dkimctl profile use`",
    }[source.kind]


def _suggestion(name: str, source: Source, known: Sequence[str]) -> str:
    """The hint's first words; how to create the profile follows."""
    from difflib import get_close_matches

    for similar in get_close_matches(name, known, 1):
        return f"did you mean {similar}? If not, create {name} with"
    if source.kind is SourceKind.PROFILE_USE:
        return "choose another with `dkimctl profile use NAME`, or create it with"
    return "see `dkimctl profile list`, or create it with"
