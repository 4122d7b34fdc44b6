"""DNS look-ups, by way of the system's resolver."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import dns.exception
import dns.message
import dns.name
import dns.rdatatype
import dns.resolver

from dkimctl.errors import ServiceError, UsageError
from dkimctl.text import printable

_AT_ONCE = 16  # look-ups
_SECONDS = 5.0  # for one, with all its repetitions
_TOLD = 10
_OTHERWISE = "name the zones of your DNS with --zone"


def system_resolver() -> dns.resolver.Resolver:
    """The resolver that this machine is set up with. Raises ServiceError where there is none."""
    try:
        return dns.resolver.Resolver()
    except (dns.exception.DNSException, OSError, ValueError) as error:
        raise ServiceError(
            f"this machine is set up with no usable DNS resolver: {printable(str(error))}",
            hint=f"check /etc/resolv.conf or the network settings, or {_OTHERWISE}",
        ) from None


def find_zones(names: Iterable[str], resolver: dns.resolver.Resolver) -> dict[str, str]:
    """The zone of each name: the nearest name above it that has an SOA record, or itself.

    Names and zones are without trailing dot. Raises ServiceError where DNS gives no answer,
    UsageError that lists the names which are in no zone below a top-level domain.
    """
    wanted = list(dict.fromkeys(names))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            found = list(pool.map(lambda name: _zone_of(name, resolver), wanted))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    zones = {name: zone for name, zone in zip(wanted, found, strict=True) if zone is not None}
    if missing := [name for name in wanted if name not in zones]:
        more = f" and {len(missing) - _TOLD} more" if len(missing) > _TOLD else ""
        raise UsageError(
            f"DNS has no zone for {', '.join(map(printable, missing[:_TOLD]))}{more}",
            hint=f"check the domain names, or {_OTHERWISE}",
        )
    return zones


def _zone_of(name: str, resolver: dns.resolver.Resolver) -> str | None:
    """None: a top-level domain or the root, in which nobody has their records."""
    below = dns.name.from_text(name)
    while len(below) > 2:  # the root is a label, too
        apex = _apex_above(below, resolver)
        if apex is not None:
            return apex.to_text(omit_final_dot=True).lower() if len(apex) > 2 else None
        below = below.parent()
    return None


def _apex_above(name: dns.name.Name, resolver: dns.resolver.Resolver) -> dns.name.Name | None:
    """The apex of the name's zone, if an answer tells it; an alias tells of another zone."""
    response = _ask(name, resolver)
    for rrset in (*response.answer, *response.authority):
        if rrset.rdtype == dns.rdatatype.SOA and name.is_subdomain(rrset.name):
            return rrset.name
    return None


def _ask(name: dns.name.Name, resolver: dns.resolver.Resolver) -> dns.message.Message:
    """The answer to a question for the name's SOA record, which mostly is that there is none."""
    try:
        return resolver.resolve(
            name, "SOA", raise_on_no_answer=False, search=False, lifetime=_SECONDS
        ).response
    except dns.resolver.NXDOMAIN as error:
        response: dns.message.Message = error.response(name)  # type: ignore[no-untyped-call]
        return response
    except (dns.exception.DNSException, OSError) as error:
        shown = printable(name.to_text(omit_final_dot=True))
        raise ServiceError(
            f"cannot find the zone of {shown}: {printable(str(error))}",
            hint=f"check the DNS resolver of this machine, or {_OTHERWISE}",
        ) from None
