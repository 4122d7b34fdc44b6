"""How to enter records in the panel of a provider, or in one that is not known."""

from __future__ import annotations

from collections.abc import Iterator

from dkimctl.publication.handoff.providers import Provider, Trait, ValueForm
from dkimctl.publication.handoff.sheet import SheetZone
from dkimctl.render.handoff.words import Words


def panel_steps(zone: SheetZone, words: Words) -> Iterator[str]:
    """The texts, in the order in which one needs them."""
    provider = zone.provider
    if provider:
        yield from _field_names(provider, words)
    if zone.place.zone:
        doubled = f"{zone.records[0].fqdn}.{zone.name}"
        adds_zone = provider and Trait.ADDS_ZONE in provider.traits
        key = "host_adds" if adds_zone else "host_mostly"
        yield words.say(key, zone=f".{zone.name}", doubled=doubled)
    yield from _value_steps(provider, words)


def _field_names(provider: Provider, words: Words) -> Iterator[str]:
    if provider.value_field:
        yield words.fill("fields", name_field=provider.name_field, value_field=provider.value_field)
    elif provider.name_field:
        yield words.fill("field", name_field=provider.name_field)


def _value_steps(provider: Provider | None, words: Words) -> Iterator[str]:
    if provider is None:
        yield words.fill("no_quotes")
        yield words.fill("maybe_strings")
    elif provider.form is ValueForm.STRINGS:
        yield words.fill("with_quotes")
    else:
        adds_quotes = Trait.ADDS_QUOTES in provider.traits
        yield words.fill("adds_quotes" if adds_quotes else "no_quotes")
        yield from _length_steps(provider, words)
    if provider and Trait.PROXIES in provider.traits:
        yield words.fill("proxies")


def _length_steps(provider: Provider, words: Words) -> Iterator[str]:
    if Trait.SPLITS in provider.traits:
        yield words.fill("splits")
    elif provider.limit is None:
        yield words.fill("maybe_strings")
    if Trait.TEXT_MODE in provider.traits:
        yield words.fill("text_mode", limit=provider.limit)
