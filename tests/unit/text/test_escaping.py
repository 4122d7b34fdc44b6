"""Text is made safe to show, and split into the strings of a TXT record."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from dkimctl.text import printable, quoted


def test_ordinary_text_stays():
    for text in ("", "plain", "back\\slash", "[red]x[/] :smile:", "日本語　東京", "café\u00a0!",
                 "עברית", "नमस्ते"):  # fmt: skip
        assert printable(text) == text


def test_control_and_invisible_characters_are_escaped():
    for char in "\x00\t\n\r\x1b\x7f\x85\x9b":
        assert printable(f"a{char}b") == f"a\\x{ord(char):02x}b"
    invisible = "\u061c\u200b\u200d\u200f\u2028\u2029\u202e\u2066\ufeff\ud800"
    fillers = "\u034f\u115f\u2800\u3164\uffa0"
    for char in invisible + fillers:
        assert printable(f"a{char}b") == f"a\\u{ord(char):04x}b"
    assert printable("a\U000e0041b") == r"a\U000e0041b"


@given(st.text(st.characters()))
def test_the_result_is_one_line_without_controls(text):
    shown = printable(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(shown.splitlines()) <= 1
    assert shown.encode("utf-8").decode("utf-8") == shown


def test_quotes_are_short_and_harmless():
    assert quoted("a\x1b[2J\u202e\n") == r'"a\x1b[2J\u202e\x0a"'
    assert quoted("x" * 61) == f'"{"x" * 60}…"'
