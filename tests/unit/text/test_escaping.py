from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.text.escaping import printable, quoted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "back\\slash",
        "[red]x[/] :smile:",
        "日本語　東京",
        "café\u00a0!",
        "עברית",
        "नमस्ते",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\x00", r"\x00"),
        ("\t", r"\x09"),
        ("\n", r"\x0a"),
        ("\r", r"\x0d"),
        ("\x1b", r"\x1b"),
        ("\x7f", r"\x7f"),
        ("\x85", r"\x85"),
        ("\x9b", r"\x9b"),
        ("\u061c", r"\u061c"),
        ("\u200b", r"\u200b"),
        ("\u200d", r"\u200d"),
        ("\u200f", r"\u200f"),
        ("\u2028", r"\u2028"),
        ("\u2029", r"\u2029"),
        ("\u202e", r"\u202e"),
        ("\u2066", r"\u2066"),
        ("\ufeff", r"\ufeff"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_control_and_invisible_characters_are_escaped(char: str, shown: str) -> None:
    assert printable(f"a{char}b") == f"a{shown}b"


@given(st.text(st.characters()))
def test_the_result_is_one_line_without_controls(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(shown.splitlines()) <= 1
    assert shown.encode("utf-8").decode("utf-8") == shown


@pytest.mark.parametrize("hidden", ["\u034f", "\u115f", "\u2800", "\u3164", "\uffa0"])
def test_invisible_fillers_are_escaped(hidden):
    assert printable(f"a{hidden}b") == f"a\\u{ord(hidden):04x}b"


def test_quotes_are_short_and_harmless():
    assert quoted("a\x1b[2J\u202e\n") == r'"a\x1b[2J\u202e\x0a"'
    assert quoted("x" * 61) == f'"{"x" * 60}…"'
