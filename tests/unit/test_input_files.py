"""Reading files: standard input, pipes, limits, and what is not UTF-8 text, kinds."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.input_files import FileKind, guess_kind, read_bytes


def test_closed_standard_input_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        read_bytes("-")


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"", FileKind.EMPTY), (b"# only a comment\n", FileKind.EMPTY),
     (b"\x1f\x8b\x08\0", FileKind.BINARY), (b"<?xml version='1.0'?>\n<a/>", FileKind.HTML),
     (b'{"sign_domain": "a.example", "setting_values": {}}\n', FileKind.SAVED),
     ("# mine\n\n  example.com\n  bücher.example.\n".encode(), FileKind.WORDS),
     (b"domain\nexample.com\n", FileKind.CSV), (b"ns1 3600 IN A 192.0.2.1\n", FileKind.ZONE),
     (b"hello, world\nhow, are you\n", None), (b"a" * 100_000_000, None),
     (b"example.com\n" * 1_000_000 + b"\xff{<", FileKind.WORDS),
     (b"\n" * 100_000_000, FileKind.EMPTY)],
    ids=lambda value: value.name if isinstance(value, FileKind) else "",
)  # fmt: skip
def test_what_a_file_seems_to_be_by_its_beginning(data, kind):
    assert guess_kind(data) is kind


@given(st.binary() | st.text().map(str.encode))
def test_any_data_is_of_one_kind_or_none(data):
    assert guess_kind(data) in {None, *FileKind}
