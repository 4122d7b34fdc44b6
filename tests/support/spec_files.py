"""The entries of one spec file that is not on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dkimctl.models import DomainSpec
from dkimctl.specs.entries import Entries
from dkimctl.specs.spec_file import add_entries


def load_specs(
    data: bytes,
    name: str,
    *,
    defaults: Mapping[str, object] | None = None,
    warn: Callable[[str], object] = lambda _sentence: None,
) -> list[DomainSpec]:
    entries = Entries()
    add_entries(entries, data, name, defaults, warn)
    return entries.specs
