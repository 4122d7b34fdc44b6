"""The schema of one command's JSON, which is a part of that of all."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_REFERENCE = r'"#/\$defs/([^"]+)"'


def described_outputs(schema: Mapping[str, Any]) -> list[str]:
    """The commands whose JSON the schema describes, and `errors`, which is on stderr.

    Other definitions, which these share, have no title.
    """
    return [name for name, one in schema["$defs"].items() if "title" in one]


def schema_of_output(schema: Mapping[str, Any], output: str) -> dict[str, Any]:
    """A schema of one of `described_outputs`, with only the definitions that it needs."""
    definitions = schema["$defs"]
    needed: set[str] = set()
    found = [output]
    while found:
        name = found.pop()
        if name not in needed:
            needed.add(name)
            found += map(unquote, re.findall(_REFERENCE, json.dumps(definitions[name])))
    return {
        "$schema": schema["$schema"],
        **definitions[output],
        "$defs": {name: one for name, one in definitions.items() if name in needed - {output}},
    }
