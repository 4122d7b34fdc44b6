"""Checks of DNS as JSON, JSON Lines and CSV."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from dkimctl.dns.verdicts import Urgency, Verdict
from dkimctl.formats.renderer import CheckFormat
from dkimctl.text import printable
from rendering import HOSTILE, HOSTILE_CHECK, check_of, render_checks

WIDTHS = [40, 120]


def table_of(*checks, **options) -> str:
    return render_checks(CheckFormat.TABLE, checks, **options)


def unfolded(text: str) -> str:
    return "".join(text.split())


@given(
    st.lists(st.tuples(st.sampled_from(Verdict), st.sampled_from(Urgency), st.sampled_from("ab"))),
    st.integers(1, 4),
)
@settings(max_examples=50)
def test_no_row_is_lost(kinds, most_alike):
    checks = [
        check_of(verdict, reason, sign_domain="x.example", urgency=urgency)
        for verdict, urgency, reason in kinds
    ]
    lines = table_of(*checks, width=200, most_alike=most_alike).splitlines()
    rows = sum(line.startswith("x.example ") for line in lines)
    more = [int(line.split()[2]) for line in lines if "… and " in line]
    assert rows + sum(more) == len(checks)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("colour", [False, True])
def test_control_characters_and_markup_have_no_effect(width, colour):
    text = table_of(HOSTILE_CHECK, width=width, colour=colour)
    assert set(re.findall(r"\x1b[^m]*m", text)) <= {f"\x1b[{n}m" for n in ("0", "1", "2", "31")}
    plain = Text.from_ansi(text).plain
    for line in plain.split("\n"):
        assert printable(line) == line
        assert cell_len(line) <= width
    hostile = unfolded(printable(HOSTILE))
    below = unfolded("".join(line for line in plain.split("\n") if line.startswith("  ")))
    assert hostile in below
    assert f"{hostile}isanaliasof{hostile}" in below
