"""TXT data."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dkimctl.render.renderer import txt_data
from dkimctl.text.escaping import character_strings

PRINTABLE_ASCII = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=1500)


def test_txt_data_is_escaped_as_in_rfc_1035() -> None:
    assert txt_data('a; "b"\\\0\x7f\u00e9') == r'"a; \"b\"\\\000\127\195\169"'
    assert txt_data("") == '""'


@given(value=PRINTABLE_ASCII)
def test_a_value_is_split_into_as_few_strings_as_possible(value: str) -> None:
    strings = character_strings(value)
    assert b"".join(strings).decode() == value
    assert len(strings) == max(1, -(-len(value) // 255))
    assert txt_data(value).startswith('"')
    assert txt_data(value).endswith('"')
