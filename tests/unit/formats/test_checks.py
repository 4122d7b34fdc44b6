"""Checks of DNS as tables."""

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


def test_bad_rows_that_are_alike_are_counted():
    checks = [
        check_of(
            Verdict.NO_ANSWER, f"d{n}.example: TXT s1._domainkey.d{n}.example: 192.0.2.1: REFUSED",
            sign_domain=f"d{n}.example", fqdn=f"s1._domainkey.d{n}.example",
        )
        for n in range(2_000)
    ]  # fmt: skip
    *_, line, more, last = table_of(*checks, width=120, most_alike=20).splitlines()
    assert "d19.example" in line
    assert more == "  … and 1,980 more: no answer: DOMAIN: TXT FQDN: 192.0.2.1: REFUSED"
    assert last == "1,980 rows like those above are not shown; --format table shows all"


def test_a_reason_that_several_share_stands_once_below_them():
    checks = [
        check_of(verdict, reason, sign_domain=f"d{n}.example", fqdn=f"s1._domainkey.d{n}.example")
        for n, (verdict, reason) in enumerate([
            (Verdict.NO_ANSWER, "TXT s1._domainkey.d0.example: timed out"), (Verdict.MISSING, ""),
            (Verdict.NO_ANSWER, "TXT s1._domainkey.d2.example: timed out"),
            (Verdict.MALFORMED, "it is empty"), (Verdict.MALFORMED, "it is empty"),
        ])
    ]  # fmt: skip
    for most, shared in (20, "  2 keys: TXT FQDN: timed out"), (None, "  TXT s1._domainkey.d2"):
        lines = table_of(*checks, width=120, most_alike=most).splitlines()
        assert sum("timed out" in line for line in lines) == (1 if most else 2)
        assert any(line.startswith(shared) for line in lines)
        assert lines[-1] == "  2 keys: it is empty"


def test_the_most_urgent_come_first_and_what_is_good_last_or_not_at_all():
    checks = [
        check_of(verdict, sign_domain=f"{verdict.value}.xn--r8jz45g.jp", urgency=urgency)
        for verdict, urgency in [(Verdict.PUBLISHED, ""), (Verdict.RETIRED, ""),
                                 (Verdict.DIFFERS, "soon"), (Verdict.MISSING, "signing")]
    ]  # fmt: skip
    rows = table_of(*checks, width=120).splitlines()[1:]
    assert [row.split(".jp ")[0] for row in rows] == [
        "missing.例え", "differs.例え", "published.例え", "retired.例え"
    ]  # fmt: skip
    for more in ({"only_attention": True}, {"most_rows": 3}):
        *some, last = table_of(*checks, width=120, **more).splitlines()[1:]
        assert [row.split(".")[0] for row in some] == ["missing", "differs"]
        assert last == "2 rows that need no attention are not shown; --format table shows all"
    assert table_of(*checks, width=120, most_rows=4).splitlines()[1:] == rows


@pytest.mark.parametrize(
    ("check", "wanted", "code"),
    [(check_of(Verdict.PUBLISHED), Verdict.PUBLISHED, "32"),
     (check_of(Verdict.PUBLISHED), Verdict.MISSING, "31"),
     (check_of(Verdict.DIFFERS), Verdict.PUBLISHED, "33"),
     (check_of(Verdict.MISSING, urgency=Urgency.SIGNING), Verdict.PUBLISHED, "1;31")],
)  # fmt: skip
def test_the_verdict_is_coloured(check, wanted, code):
    text = table_of(check, wanted=wanted, colour=True)
    assert f"\x1b[{code}m{check.finding.verdict}" in text
    assert Text.from_ansi(text).plain.rstrip() == table_of(check, wanted=wanted).rstrip()


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
