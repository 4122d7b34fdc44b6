"""How errors speak of what people wrote."""

from __future__ import annotations

from collections.abc import Iterable

from dkimctl.text.escaping import printable

_LONGEST_QUOTE = 60


def shown(text: str) -> str:
    """`text` in quotes for a message: on one line, harmless to a terminal, cut at 60 characters."""
    cut = text[:_LONGEST_QUOTE] + "…" if len(text) > _LONGEST_QUOTE else text
    return f'"{printable(cut)}"'


def nearest(word: str, choices: Iterable[str]) -> str:
    """A hint for an unknown word: the choice that looks like it, or else all of them."""
    import difflib

    known = list(choices)
    like = difflib.get_close_matches(word[:_LONGEST_QUOTE].lower(), known, n=1)
    return f"did you mean {like[0]}?" if like else f"known here: {', '.join(known)}"
