"""What the YAML parser complains of, in plain words."""

from __future__ import annotations

from typing import Any

from dkimctl.strict_yaml.nodes import Mark
from dkimctl.text.escaping import printable

# The first fragment that stands in the parser's own words decides.
_HINTS = (
    ("mapping values", "check the indentation, and put text that holds ': ' in quotes"),
    (
        "cannot start any token",
        "indent with spaces, not tabs; text that begins with @, ` or % needs quotes",
    ),
    ("tab character", "indent with spaces, not tabs"),
    ("end of stream", "a quotation mark or a bracket is not closed"),
    ("' or '", "a bracket is not closed, or a comma is missing"),
    ("directive", "remove the line that begins with %"),
)
_OTHERWISE = "check the indentation, quotes and brackets here and on the line before"


def explain(error: Any) -> tuple[Mark, str, str]:
    """Where, what and a hint, from a `yaml.MarkedYAMLError`."""
    words = printable(error.problem)
    mark, begun = error.problem_mark, error.context_mark
    message = f"not valid YAML: {words}"
    if begun and begun.line != mark.line:
        message += f" ({error.context} that begins on line {begun.line + 1})"
    hint = next((hint for fragment, hint in _HINTS if fragment in words), _OTHERWISE)
    return mark, message, hint
