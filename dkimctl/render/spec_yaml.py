"""Specs as YAML, as `register` reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from dkimctl.models.registration import DomainSpec

# Unquoted, every version of YAML reads this as text, except for its keywords.
_PLAIN = r"[A-Za-z](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_KEYWORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def render_spec_yaml(specs: Iterable[DomainSpec], comment: str) -> Iterator[str]:
    """A comment line, then a list of entries without unset fields; `[]` for no specs."""
    yield f"# {comment}\n"
    is_empty = True
    for spec in specs:
        fields = spec._asdict().items()
        lines = (f"{key}: {_scalar(value)}\n" for key, value in fields if value is not None)
        yield "- " + "  ".join(lines)
        is_empty = False
    if is_empty:
        yield "[]\n"


def _scalar(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(_PLAIN, value) and value.lower() not in _KEYWORDS:
        return value
    # JSON is YAML; it escapes line breaks and non-ASCII characters.
    return json.dumps(value)
