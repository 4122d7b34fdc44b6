"""Specs as YAML, as `register` reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dkimctl.models.registration import DomainSpec
from dkimctl.strict_yaml import yaml_scalar


def render_spec_yaml(specs: Iterable[DomainSpec], comment: str) -> Iterator[str]:
    """A comment line, then a list of entries without unset fields; `[]` for no specs."""
    yield f"# {comment}\n"
    is_empty = True
    for spec in specs:
        fields = spec._asdict().items()
        lines = (f"{key}: {yaml_scalar(value)}\n" for key, value in fields if value is not None)
        yield "- " + "  ".join(lines)
        is_empty = False
    if is_empty:
        yield "[]\n"
