"""The DNS targets of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dkimctl.cli.output import next_steps
from dkimctl.cli.session import Session
from dkimctl.errors import UsageError

if TYPE_CHECKING:
    from dkimctl.publishing.changes import ConfiguredTarget


def open_dns_targets(session: Session) -> Sequence[ConfiguredTarget]:
    """The targets of the profile. Raises UsageError if there is none, or one cannot be used."""
    if not session.has_dns_targets:
        profile = session.profile.name
        raise UsageError(
            f"no DNS target is configured for the profile {profile}",
            hint=f"{_how_to_configure(session, profile)}, or publish by hand: "
            f"{next_steps.publish(())}",
        )
    from dkimctl.publishing.targets import open_targets

    return open_targets(session.config, session.profile.name, session.secrets)


def _how_to_configure(session: Session, profile: str) -> str:
    file = session.config_file
    if not session.config.dns:
        return f"write `dns` into {file} (docs/publish.md shows how)"
    return f"add {profile} to `profiles` of an entry of `dns` in {file}: `profiles: [{profile}]`"
