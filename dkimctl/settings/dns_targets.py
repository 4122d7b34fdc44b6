"""The DNS targets of the config file: which zones, and how to change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dkimctl.settings.values import SANDBOX

DEFAULT_TTL = 3600  # seconds


class DnsTarget(NamedTuple):
    """One entry of `dns` in the config file.

    `zones` are names or globs, in lower case and without trailing dot; none: all zones that the
    target has. `profiles` are those that may use it; none: all but the sandbox. `ttl` is in
    seconds. `provider` is `rfc2136` (with `server` and `key_file`) or `octodns` (with `class_name`
    and `settings`, in which `env/NAME` and `keyring/NAME` stand for secrets).
    """

    provider: str
    zones: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    ttl: int = DEFAULT_TTL
    server: str = ""
    key_file: str = ""
    class_name: str = ""
    settings: Mapping[str, object] = {}

    def is_for(self, profile: str) -> bool:
        """Whether the profile may use it."""
        return profile in self.profiles if self.profiles else profile != SANDBOX

    def shares_profile(self, other: DnsTarget) -> bool:
        """Whether there is a profile that may use both."""
        if self.profiles and other.profiles:
            return not set(self.profiles).isdisjoint(other.profiles)
        return any(name != SANDBOX for name in self.profiles or other.profiles or ("",))
