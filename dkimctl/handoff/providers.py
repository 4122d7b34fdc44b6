"""DNS providers: how each is recognized, and what its panel expects.

To add one, add an entry to providers.yaml.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from enum import StrEnum
from importlib.resources import files
from typing import Any, NamedTuple

from dkimctl.errors import UsageError
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


class DnsProvider(NamedTuple):
    """A provider's panel. Fields without a name are not documented, or not in English."""

    key: str
    name: str
    hosts: str  # a pattern for the names of its servers
    source: str
    name_field: str = ""
    value_field: str = ""
    form: ValueForm = ValueForm.WHOLE
    limit: int | None = None  # of a value, in characters; None: none is documented
    traits: tuple[Trait, ...] = ()


@functools.cache
def providers() -> tuple[DnsProvider, ...]:
    """All known providers, sorted by key."""
    return tuple(
        DnsProvider(
            key,
            **{
                **fields,
                "form": ValueForm(fields.get("form", "whole")),
                "traits": tuple(map(Trait, fields.get("traits", ()))),
            },
        )
        for key, fields in read_yaml("providers.yaml").items()
    )


def provider_of(hosts: Iterable[str]) -> DnsProvider | None:
    """The provider of all these name servers (lower case, without trailing dot), if it is known."""
    names = list(hosts)
    for provider in providers() if names else ():
        if all(re.fullmatch(provider.hosts, name) for name in names):
            return provider
    return None


def provider_with(key: str) -> DnsProvider:
    """The provider with this key. Raises UsageError."""
    for provider in providers():
        if provider.key == key.lower():
            return provider
    raise UsageError(
        f"unknown provider {quoted(key)}",
        hint=f"write one of {', '.join(provider.key for provider in providers())}; for others, "
        "leave it out",
    )


def read_yaml(name: str) -> dict[str, Any]:
    """A data file of this package."""
    import yaml

    content: dict[str, Any] = yaml.safe_load((files(__package__) / name).read_text("utf-8"))
    return content
