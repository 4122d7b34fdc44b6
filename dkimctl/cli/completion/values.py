"""The values that an option or argument can take, by its metavar."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from dkimctl.handoff.providers import providers
from dkimctl.render.output_schema import described_outputs
from dkimctl.settings.schemas import Schema, read_schema


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


def _words_of_outputs() -> Source:
    """The words of the commands whose JSON `dkimctl schema output` describes."""
    outputs = described_outputs(json.loads(read_schema(Schema.OUTPUT)))
    return tuple(dict.fromkeys(word for output in outputs for word in output.split()))


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
    "[COMMAND]...": _words_of_outputs(),
    "STORE": ("keyring", "file"),
    "METHOD": ("GET", "POST", "PUT", "PATCH", "DELETE"),
    "PROVIDER": tuple(provider.key for provider in providers()),
    "BITS": ("1024", "2048"),  # interface 2.3
}
