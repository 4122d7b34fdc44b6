"""Values as YAML, as every version of it reads them."""

from __future__ import annotations

import json
import re

# Unquoted, every version of YAML reads this as text, except for its keywords.
_PLAIN = r"[A-Za-z/](?:[A-Za-z0-9._~/%:\[\]-]*[A-Za-z0-9/\]])?"
_KEYWORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def yaml_scalar(value: object) -> str:
    """Text, a number or a boolean; text is in quotes only if it needs them."""
    if isinstance(value, str) and re.fullmatch(_PLAIN, value) and value.lower() not in _KEYWORDS:
        return value
    # JSON is YAML, but for its surrogate pairs and the character DEL.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if " " <= char <= "~" else f"\\U{ord(char):08x}" for char in text)
