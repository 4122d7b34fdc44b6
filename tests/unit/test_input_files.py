"""Reading files: standard input, pipes, limits, and what is not UTF-8 text, kinds."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import InputError, UsageError
from dkimctl.input_files import FileKind, Text, guess_kind, read_bytes


def test_closed_standard_input_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        read_bytes("-")


def read_all(data: bytes) -> bytes:
    return b"".join(iter(Text(data, "f").next_chunk, b""))


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"a\nb: \xff", "f:2:4: byte 0xff is not UTF-8"),
     (b"\xef\xbb\xbfa\r\n\xc3\xa9: \xff", "f:2:4: byte 0xff is not UTF-8"),
     (b"a: \xed\xa0\x80", "f:1:4: byte 0xed is not UTF-8"),
     (b"a\r\0", "f:2:1: the character U+0000 is not allowed"),
     (b"a: \x1b[2J", "f:1:4: the character U+001B is not allowed"),
     (b"a: \xe2\x80\xa8", "f:1:4: the character U+2028 is not allowed"),
     ("a: b".encode("utf-16"), "f:1:1: the file is in UTF-16"),
     ("a: b".encode("utf-16-be"), "f:1:1: the character U+0000 is not allowed")],
)  # fmt: skip
def test_what_is_not_text_is_reported_with_its_place(data, expected):
    with pytest.raises(InputError) as caught:
        read_all(data)
    assert str(caught.value).startswith(expected)
    assert "UTF-8" in caught.value.hint


@pytest.mark.parametrize("char", ["é", "日", "😀"])
def test_a_character_may_lie_across_two_chunks(char):
    for before in range(4):
        data = b"a" * ((1 << 16) - before) + char.encode()
        assert read_all(data) == data


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"", FileKind.EMPTY), (b"# only a comment\n", FileKind.EMPTY),
     (b"\x1f\x8b\x08\0", FileKind.BINARY), (b"<?xml version='1.0'?>\n<a/>", FileKind.HTML),
     (b'{"sign_domain": "a.example", "setting_values": {}}\n', FileKind.SAVED),
     ("# mine\n\n  example.com\n  bücher.example.\n".encode(), FileKind.LIST),
     (b"example.com # owner: Bob\nexample.net # see: x\n", FileKind.LIST),
     (b"example.com\nexample.net: x\n", None),
     (b"domain\nexample.com\n", FileKind.CSV), (b"ns1 3600 IN A 192.0.2.1\n", FileKind.ZONE),
     (b"hello, world\nhow, are you\n", None), (b"a" * 100_000_000, None),
     (b"example.com\n" * 1_000_000 + b"\xff{<", FileKind.LIST),
     (b"\n" * 100_000_000, FileKind.EMPTY)],
    ids=lambda value: value.name if isinstance(value, FileKind) else "",
)  # fmt: skip
def test_what_a_file_seems_to_be_by_its_beginning(data, kind):
    assert guess_kind(data) is kind


@given(st.binary() | st.text().map(str.encode))
def test_any_data_is_of_one_kind_or_none(data):
    assert guess_kind(data) in {None, *FileKind}
