"""Where records belong: the zone of each, its name servers, and what is known of its provider.

To add a provider, add an entry to providers.yaml.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from importlib.resources import files
from typing import Any, NamedTuple

from dkimctl.dns.messages import NS, make_question
from dkimctl.dns.nameserver import NoAnswer, RecursiveResolver, system_nameservers
from dkimctl.dns.zones import MAX_IN_FLIGHT, find_zone, hosts_in, look_up, once
from dkimctl.errors import ServiceError, UsageError
from dkimctl.names import zone_finder
from dkimctl.text import quoted


class ValueForm(StrEnum):
    """How the value of a TXT record is entered."""

    WHOLE = "whole"  # in one piece, without quotes
    STRINGS = "strings"  # as quoted strings of at most 255 characters


class Trait(StrEnum):
    """What to know about a panel."""

    ADDS_ZONE = "adds_zone"  # to the host
    ADDS_QUOTES = "adds_quotes"  # around what is entered
    SPLITS = "splits"  # long values into strings
    PROXIES = "proxies"  # records of other types
    TEXT_MODE = "text_mode"  # takes strings, where its form is limited
    TARGET_DOT = "target_dot"  # without a final dot, it adds the zone to a target


class DnsProvider(NamedTuple):
    """A provider. Fields of its panel without a name are not documented, or not in English."""

    key: str
    name: str
    hosts: str = ""  # a pattern for the names of its servers; "": nothing is known of its panel
    source: str = ""
    name_field: str = ""
    value_field: str = ""
    target_field: str = ""  # of a CNAME record
    alias_source: str = ""  # where that is documented
    form: ValueForm = ValueForm.WHOLE
    limit: int | None = None  # of a value, in characters; None: none is documented
    traits: tuple[Trait, ...] = ()
    octodns: str = ""  # the class of octoDNS
    settings: Mapping[str, str] = {}  # that it needs, with `env/NAME` for what differs


class Trouble(StrEnum):
    """Why something about a place is not known."""

    NONE = ""
    NO_ZONE = "no_zone"  # DNS has none with this name
    NO_ANSWER = "no_answer"


class DnsPlace(NamedTuple):
    """A zone ("": not known), its name servers; `reason`: what DNS answered, if in trouble."""

    zone: str = ""
    name_servers: tuple[str, ...] = ()
    trouble: Trouble = Trouble.NONE
    reason: str = ""


def providers() -> list[DnsProvider]:
    """The providers whose panels are known, sorted by key."""
    return [provider for provider in _all_providers() if provider.hosts]


def octodns_providers() -> dict[str, DnsProvider]:
    """The providers whose DNS octoDNS changes, by key."""
    return {provider.key: provider for provider in _all_providers() if provider.octodns}


@functools.cache
def _all_providers() -> tuple[DnsProvider, ...]:
    providers = []
    for key, fields in read_yaml("providers.yaml").items():
        form = ValueForm(fields.pop("form", ValueForm.WHOLE))
        traits = tuple(map(Trait, fields.pop("traits", ())))
        providers.append(DnsProvider(key, form=form, traits=traits, **fields))
    return tuple(providers)


def provider_of(hosts: Sequence[str]) -> DnsProvider | None:
    """The provider of all these name servers (lower case, without trailing dot), if it is known."""
    for provider in providers() if hosts else ():
        if all(re.fullmatch(provider.hosts, host) for host in hosts):
            return provider
    return None


def provider_with(key: str) -> DnsProvider:
    """The provider with this key. Raises UsageError."""
    known = {provider.key: provider for provider in providers()}
    if provider := known.get(key.lower()):
        return provider
    hint = f"write one of {', '.join(known)}; for others, leave it out"
    raise UsageError(f"unknown provider {quoted(key)}", hint=hint)


def read_yaml(name: str) -> dict[str, Any]:
    """A data file of this package."""
    import yaml

    content: dict[str, Any] = yaml.safe_load((files(__package__) / name).read_text("utf-8"))
    return content


def find_places(names: Iterable[str], zones: Sequence[str] = ()) -> dict[str, DnsPlace]:
    """The place of each name, as DNS has it; of `zones`, the longest, and nothing is asked."""
    unique = list(dict.fromkeys(names))
    if zones:
        find = zone_finder(zones)
        return {name: DnsPlace(find(name) or "") for name in unique}
    try:
        resolver = RecursiveResolver(system_nameservers(), MAX_IN_FLIGHT)
    except ServiceError as error:
        return dict.fromkeys(unique, DnsPlace(trouble=Trouble.NO_ANSWER, reason=error.message))
    return asyncio.run(look_up_places(unique, resolver))


async def look_up_places(names: Sequence[str], resolver: RecursiveResolver) -> dict[str, DnsPlace]:
    """The place of each of these names, which differ."""
    tasks: dict[str, asyncio.Task[DnsPlace]] = {}

    async def find_place(name: str) -> DnsPlace:
        try:
            zone = await find_zone(name, resolver)
        except NoAnswer as error:
            return DnsPlace(trouble=Trouble.NO_ANSWER, reason=str(error))
        if zone is None:
            return DnsPlace(trouble=Trouble.NO_ZONE, reason="DNS has no zone for it")
        return await once(tasks, zone, find_name_servers)

    async def find_name_servers(zone: str) -> DnsPlace:
        try:
            answer = await look_up(resolver, make_question(zone, NS))
        except NoAnswer as error:
            return DnsPlace(zone, trouble=Trouble.NO_ANSWER, reason=str(error))
        return DnsPlace(zone, tuple(hosts_in(answer)))

    return dict(zip(names, await asyncio.gather(*map(find_place, names)), strict=True))
