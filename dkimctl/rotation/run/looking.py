"""Look at DNS: all authoritative servers, and again for a while after a change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from dkimctl.dns.check import CheckPolicy, check_publication
from dkimctl.dns.looks import Looks
from dkimctl.dns.verdicts import Check
from dkimctl.models.registration import Registration, RegistrationKey
from dkimctl.rotation.run.tools import RunPolicy, Tools


def look(
    registrations: Sequence[Registration],
    changed: Collection[RegistrationKey],
    policy: RunPolicy,
    tools: Tools,
    looks: Looks,
    *,
    expect_absent: bool = False,
) -> dict[RegistrationKey, Check]:
    """The last check of each record; `looks` gets what is certain.

    Records that were `changed` just now are checked until all servers have that, for as long as
    `policy` says; in a dry run, nothing was changed. Raises ServiceError without a resolver.
    """
    checks: dict[RegistrationKey, Check] = {}
    waited_for = [one for one in registrations if one.key in changed]
    others = [one for one in registrations if one.key not in changed]
    longest = 0.0 if policy.is_dry else policy.wait
    for some, wait in ((others, 0.0), (waited_for, longest)):
        if not some:
            continue
        check_policy = CheckPolicy(wait, timedelta(), expect_absent)
        with tools.watching(check_policy.wanted) as progress:
            check_publication(
                some,
                tools.open_source(),
                check_policy,
                lambda check: checks.update({check.key: check}),
                progress=progress,
                looks=looks,
            )
    return checks
