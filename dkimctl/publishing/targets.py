"""The targets that the config file has for a profile, and the access to their zones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from dkimctl.addresses import parse_server
from dkimctl.credentials.keyring_store import ReferencedSecrets
from dkimctl.errors import DkimctlError, DnsRefused, ServiceError
from dkimctl.models import DnsRecord, DomainSpec, Registration, RegistrationKey
from dkimctl.names import is_glob
from dkimctl.publishing.octodns import OctodnsTarget, convert
from dkimctl.publishing.plan import Access, Target, TargetZone, by_target_zone, find_target_zones
from dkimctl.publishing.tsig_key import read_tsig_key
from dkimctl.settings.config import Config, DnsTarget
from dkimctl.settings.rotation import Pool
from dkimctl.settings.values import is_reference
from dkimctl.threads import work_in_parallel

_MADE_UP = "dkimctl-access-check"  # a selector to try where none is known


def open_targets(config: Config, profile: str, secrets: ReferencedSecrets) -> list[Target]:
    """The targets of this profile, in the file's order; their secrets are read at the first use."""
    return [_open_target(entry, secrets) for entry in config.dns if entry.is_for(profile)]


def _open_target(entry: DnsTarget, secrets: ReferencedSecrets) -> Target:
    if entry.provider == "rfc2136":
        from dkimctl.publishing.rfc2136 import Rfc2136Target

        read_key = partial(read_tsig_key, entry.key_file) if entry.key_file else None
        server = parse_server(entry.server)
        return Rfc2136Target(entry.server, server, entry.ttl, read_key, zones=entry.zones)

    def resolved(value: object) -> object:
        return secrets.read(value) if isinstance(value, str) and is_reference(value) else value

    return OctodnsTarget(
        entry.class_name, lambda: convert(entry.settings, resolved), entry.ttl, zones=entry.zones
    )


class ZoneAccess(NamedTuple):
    """The access to a zone with this number of registered names; `zone` is "" if not known."""

    target: str
    zone: str
    names: int
    access: Access
    error: DkimctlError | None = None
    registrations: Sequence[Registration] = ()  # with these names

    @property
    def why_not_written(self) -> DkimctlError | None:
        """Why nothing can be written, as far as is known: there is something to do about it."""
        access, kind = self.access, ServiceError if self.access.writable is None else DnsRefused
        is_known = access.writable is False or (access.writable is None and access.hint)
        return self.error or (kind(access.reason, hint=access.hint) if is_known else None)


def where_led(
    registrations: Iterable[Registration], pool_of: Callable[[str], Pool | None]
) -> Iterator[Registration]:
    """The registrations, those with selectors of pools with the names that these lead to."""
    for registration in registrations:
        (domain, selector), record = registration.key, registration.record
        pool = pool_of(domain)
        if pool is None or record is None or selector not in pool.names():
            yield registration
        else:
            led = record._replace(fqdn=pool.target_of(domain, selector))
            yield registration._replace(record=led)


#: A zone, the names to try in it, and what is registered in it.
_Job: TypeAlias = tuple[TargetZone, Sequence[str], Sequence[Registration]]


def check_access(
    registrations: Iterable[Registration], targets: Sequence[Target], *,
    tries_named: bool = False, progress: Callable[[int], None] = lambda _: None,
) -> tuple[list[ZoneAccess], list[Registration]]:  # fmt: skip
    """Try the zone of each record, without changing anything; and the records in no zone.

    `tries_named`: also the other zones that the config file names, with a name that is made up.
    `progress` gets, in this thread, how many are done. A target without names to try has no zone.
    """
    grouped, uncovered = by_target_zone(registrations, targets)
    jobs: list[_Job] = [
        (zone, [name for name, _ in named], [registration for _, registration in named])
        for zone, named in grouped
    ]
    if tries_named:
        known = {(item.target, item.zone) for item, _ in grouped}
        zones = [zone for target in targets for zone in target.zones if not is_glob(zone)]
        names = [f"{_MADE_UP}._domainkey.{zone}" for zone in zones]
        for name, place in find_target_zones(names, targets).items():
            if place is not None and (place.target, place.zone) not in known:
                jobs.append((place, [name], ()))
    tried: list[ZoneAccess] = []

    def add(*accesses: ZoneAccess) -> None:
        tried.extend(accesses)
        progress(sum(zone.names for zone in tried))

    def try_zone(job: _Job) -> Iterator[ZoneAccess]:
        (target, zone, error), names, registered = job
        try:
            if error is not None:
                raise error
            access = target.check_access(zone, names)
        except DkimctlError as failure:
            error, access = failure, Access(False, None, failure.message, failure.hint)
        yield ZoneAccess(target.label, zone, len(registered), access, error, registered)

    work_in_parallel(jobs, try_zone, add, wait=add)
    used = {target_zone.target for target_zone, _, _ in jobs}
    idle = [target.label for target in targets if target not in used]
    untried = Access(None, None, "no selected domain is in its zones")
    tried += [ZoneAccess(label, "", 0, untried) for label in dict.fromkeys(idle)]
    return sorted(tried, key=lambda zone: (zone.target, zone.zone)), uncovered


def try_new_keys(
    specs: Iterable[DomainSpec], targets: Sequence[Target]
) -> Iterator[tuple[DomainSpec, Registration, DkimctlError | None]]:
    """The registration that each spec asks for, and why its record could not be published.

    They sign whether they are in DNS or not. What no target covers is not tried.
    """
    tried = []
    for spec in specs:
        fqdn = f"{spec.selector or _MADE_UP}._domainkey.{spec.sign_domain}"
        asked = spec.key_len, spec.start_date, spec.default, spec.enable
        record = DnsRecord(fqdn, "TXT", "")
        tried.append((spec, Registration(spec.sign_domain, spec.selector, *asked, record)))
    faults = faults_of([registration for _, registration in tried], targets)
    for spec, registration in tried:
        yield spec, registration, faults.get(registration.key)


def faults_of(
    registrations: Iterable[Registration], targets: Sequence[Target]
) -> dict[RegistrationKey, DkimctlError | None]:
    """Why the record of each could not be written, of those in the zones of targets."""
    zones, _ = check_access(registrations, targets)
    return {each.key: zone.why_not_written for zone in zones for each in zone.registrations}
