"""Specs as YAML: what `register` reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from dkimctl.models.registration import DomainSpec

# What every version of YAML takes for text, but for its words; all else is put into quotes.
_PLAIN = r"[A-Za-z](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def render_spec_yaml(specs: Iterable[DomainSpec], comment: str) -> Iterator[str]:
    """A comment of one line, and a list of entries with what each states; `[]` for none."""
    yield f"# {comment}\n"
    is_empty = True
    for spec in specs:
        stated = [(key, value) for key, value in spec._asdict().items() if value is not None]
        lines = (f"{key}: {_scalar(value)}\n" for key, value in stated)
        yield "- " + "  ".join(lines)
        is_empty = False
    if is_empty:
        yield "[]\n"


def _scalar(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(_PLAIN, value) and value.lower() not in _WORDS:
        return value
    # JSON is YAML; it escapes line breaks, and all that is not ASCII.
    return json.dumps(value)
