"""The JSON Schemas of files and of output, each beside the code that it describes."""

from __future__ import annotations

from enum import StrEnum

_BASE_URL = "https://raw.githubusercontent.com/dkimctl/dkimctl/main/dkimctl"


class Schema(StrEnum):
    """What a schema describes: spec files, the config file, or what commands print as JSON."""

    SPECS = "specs"
    CONFIG = "config"
    OUTPUT = "output"


_PACKAGES = {Schema.SPECS: "specs", Schema.CONFIG: "settings", Schema.OUTPUT: "render"}


def schema_url(schema: Schema) -> str:
    """Where it is published."""
    return f"{_BASE_URL}/{_PACKAGES[schema]}/schema.json"


def read_schema(schema: Schema) -> str:
    """Its text, which is JSON."""
    from importlib.resources import files

    path = files("dkimctl").joinpath(_PACKAGES[schema], "schema.json")
    return path.read_text(encoding="utf-8")


def modeline(schema: Schema) -> str:
    """The first line of a YAML file, by which yaml-language-server finds its schema."""
    return f"# yaml-language-server: $schema={schema_url(schema)}\n"
