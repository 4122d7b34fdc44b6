"""The values that an option or argument can take, by its metavar."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from dkimctl.publication.handoff.providers import PROVIDERS


class Kind(StrEnum):
    """What stands in a source for names, which `dkimctl` knows, and files, which the shell does."""

    PROFILES = "@profiles"
    DOMAINS = "@domains"
    CLIENTS = "@clients"
    FILES = "@files"
    SPECS = "@specs"
    DIRECTORIES = "@directories"


Source = tuple[str, ...]  # words, and kinds of them


def source_of(parameter: Any) -> Source | None:
    """The source of an option's or argument's values; None if they are free text."""
    if choices := getattr(parameter.type, "choices", ()):
        return tuple(map(str, choices))
    return _SOURCES.get(parameter.metavar)


_SOURCES: dict[str, Source] = {
    "FILE": (Kind.FILES,),
    "[FILE]...": (Kind.FILES,),
    "MAIL...": (Kind.FILES,),
    "FILE|URL": (Kind.FILES,),
    "DIR": (Kind.DIRECTORIES,),
    "NAME": (Kind.PROFILES,),
    "SELECTION...": (Kind.DOMAINS, Kind.SPECS),
    "[SELECTION]...": (Kind.DOMAINS, Kind.SPECS),
    "CLIENT_ID": (Kind.CLIENTS,),
    "STORE": ("keyring", "file"),
    "METHOD": ("GET", "POST", "PUT", "PATCH", "DELETE"),
    "PROVIDER": tuple(provider.key for provider in PROVIDERS),
    "BITS": ("1024", "2048"),  # interface 2.3
}
