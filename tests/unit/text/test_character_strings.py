"""The strings of a TXT record."""

from __future__ import annotations

import pytest

from dkimctl.text.escaping import MAX_STRING, character_strings


@pytest.mark.parametrize(
    ("value", "lengths"),
    [
        ("", [0]),
        ("v", [1]),
        ("v" * MAX_STRING, [255]),
        ("v" * 256, [255, 1]),
        ("é" * 256, [255, 255, 2]),
    ],
)
def test_a_value_is_split_by_bytes(value, lengths):
    strings = character_strings(value)
    assert [len(one) for one in strings] == lengths
    assert b"".join(strings).decode() == value


def test_a_surrogate_has_bytes_too():
    assert character_strings("\ud800") == [b"\xed\xa0\x80"]
