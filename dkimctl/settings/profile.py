"""A profile: the settings that a command uses."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.settings.config import Config
from dkimctl.settings.values import SANDBOX, SANDBOX_FIXED

SANDBOX_CLIENT_ID = SANDBOX_FIXED["client_id"]

DEFAULT_PROFILE = "default"  # used if no source names another


class Profile(NamedTuple):
    """The settings for one service and client. Durations are in seconds.

    None means that no source sets the key. `defaults` are spec fields for entries without them.
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


def require_account(profile: Profile) -> tuple[str, str, str]:
    """The (auth_url, base_url, client_id) of a profile. Raises UsageError if one is missing."""
    return (
        _required(profile, "auth_url"),
        _required(profile, "base_url"),
        _required(profile, "client_id"),
    )


def require_ledger_account(profile: Profile) -> tuple[str, str]:
    """The (base_url, client_id) that identify a profile's part of the ledger.

    Raises UsageError if one is missing.
    """
    return _required(profile, "base_url"), _required(profile, "client_id")


def profiles_with(
    login: Mapping[str, str], config: Config, logins: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """The names of the profiles that use the credentials of `login`."""
    names = []
    for name in {**logins, **config.profiles}:
        settings = stored_settings(name, config, logins)
        if all(settings.get(key) == value for key, value in login.items()):
            names.append(name)
    return names


def stored_settings(
    name: str, config: Config, logins: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """What the config file and the login of a profile set, whatever options and environment say."""
    default = {"credential_store": Profile._field_defaults["credential_store"]}
    return {**default, **logins.get(name, {}), **config.profiles.get(name, {})}


def known_profiles(config: Config, logins: Mapping[str, object]) -> list[str]:
    """The names of all profiles, of which two always exist."""
    return sorted({DEFAULT_PROFILE, SANDBOX, *config.profiles, *logins})


def _required(profile: Profile, key: str) -> str:
    value: str | None = getattr(profile, key)
    if value is None:
        option = key.replace("_", "-")
        raise UsageError(
            f"the profile {profile.name} has no {key}",
            hint=f"run `dkimctl login`, or set --{option} or DKIMCTL_{key.upper()}; "
            "--sandbox works without an account",
        )
    return value
