"""The keys of some domains, with their stages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.models.keys import KeyStatus
from dkimctl.models.registration import Registration, key_of
from dkimctl.rotation.review import KnownKeys
from dkimctl.rotation.stages import find_stages, stage_of_closed
from dkimctl.settings.config import RotationSettings

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger


class DomainKey(NamedTuple):
    """A key and its status. `registration` is None of one that was removed."""

    status: KeyStatus
    registration: Registration | None


def read_domain_keys(
    ledger: Ledger, domains: Iterable[str], settings: RotationSettings, now: datetime
) -> list[DomainKey]:
    """The keys of these domains, which are in lower case, and of no others."""
    domains = set(domains)
    registered = [one for domain in sorted(domains) for one in ledger.of_domain(domain)]
    histories = ledger.histories() if registered else {}
    known = KnownKeys(registered, frozenset(registered), histories)
    by_key = {one.key: one for one in registered}
    statuses = list(find_stages(known, settings, now))
    closed = [one for one in ledger.closed_keys() if one.key.sign_domain in domains]
    return [
        *(DomainKey(stage_of_closed(one), None) for one in closed if one.key not in by_key),
        *(DomainKey(one, by_key[key_of(one.sign_domain, one.selector)]) for one in statuses),
    ]
