"""Checks of DNS as people and programs read them."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from dkimctl.publication.verdicts import Check, Finding, ServerFinding, Urgency, Verdict
from dkimctl.render.formats import open_check_renderer
from dkimctl.render.renderer import CheckFormat, render_all
from dkimctl.text.escaping import printable

WIDTHS = [40, 80, 120, 200]
LONG_DOMAIN = ".".join(["d" * 59] * 4)
HOSTILE = "[red]x[/] :smile: \x1b[2J\x9b1m\n\r\u202eevil\x7f\udcff 日本語の [link=x]y"


def check_of(verdict: Verdict = Verdict.PUBLISHED, reason: str = "", **changes) -> Check:
    """A check, less what `changes` say."""
    domain = changes.get("sign_domain", "example.com")
    fields = {
        "sign_domain": domain,
        "selector": "s1",
        "fqdn": f"s1._domainkey.{domain}",
        "start_date": "2026-03-01T00:00+09:00",
        "enable": True,
        "finding": Finding(verdict, reason),
    }
    return Check(**(fields | changes))


@pytest.fixture(scope="session")
def every_verdict() -> list[Check]:
    """A check of each verdict, the urgent ones last."""
    good = [check_of(verdict, sign_domain=f"{verdict.name.lower()}.example") for verdict in Verdict]
    soon = check_of(Verdict.MISSING, sign_domain="soon.example", urgency=Urgency.SOON)
    signing = check_of(
        Verdict.MISMATCH, "it is another key (p=)", sign_domain="signing.example",
        urgency=Urgency.SIGNING, alias="k.hosted.example",
    )  # fmt: skip
    return [*good, soon, signing]


def text_of(fmt: CheckFormat, checks, *, wanted=Verdict.PUBLISHED, **options) -> str:
    return "".join(render_all(open_check_renderer(fmt, wanted=wanted, **options), checks))


def table_of(*checks, **options) -> str:
    return text_of(CheckFormat.TABLE, checks, **options)


def domains(text: str) -> list[str]:
    """Those of the rows, in their order; at widths that fold none."""
    return re.findall(r"^([a-z_]+)\.example ", text, re.MULTILINE)


def unfolded(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_every_line_keeps_within_the_width(every_verdict, width):
    for line in table_of(*every_verdict, width=width).splitlines():
        assert cell_len(line) <= width, line


@pytest.mark.parametrize("width", WIDTHS[1:])
def test_a_row_holds_all_that_is_asked_for(width):
    header, row = table_of(check_of(), width=width).splitlines()
    assert header == header.rstrip()
    assert re.split(" {2,}", header) == ["DOMAIN", "SELECTOR", "IN DNS", "START", "URGENCY"]
    assert re.split(" {2,}", row) == [
        "example.com", "s1", "published", "2026-03-01T00:00+09:00", "-",
    ]  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut(width):
    check = check_of(
        Verdict.INCONSISTENT, "published at 3 of 4 servers; ns.example.net (192.0.2.1): missing",
        sign_domain=LONG_DOMAIN, selector="s" * 63, alias="a." * 100 + "example",
        urgency=Urgency.SIGNING, start_date=None,
    )  # fmt: skip
    header, *lines = table_of(check, width=width).splitlines()
    starts = [found.end() - 1 for found in re.finditer(r"(^|  +)\S", header)]
    rows = [line for line in lines if line.startswith("d")]
    cells = [
        unfolded("".join(row[start:end] for row in rows))
        for start, end in zip_longest(starts, starts[1:])
    ]
    assert cells == [LONG_DOMAIN, "s" * 63, "inconsistent", "-", "SIGNINGNOWWITHOUTDNS"]
    below = unfolded("".join(line for line in lines if line.startswith("  ")))
    reason, alias = check.finding.reason, f"{check.fqdn} is an alias of {check.alias}"
    assert below == unfolded(reason + alias)


def test_reason_and_alias_stand_below_their_row():
    check = check_of(Verdict.MISMATCH, "it is another key (p=)", alias="k.example.net")
    assert table_of(check, check_of()).splitlines()[2:4] == [
        "  it is another key (p=)",
        "  s1._domainkey.example.com is an alias of k.example.net",
    ]


def test_the_most_urgent_stand_first_and_the_good_last(every_verdict):
    found = domains(table_of(*every_verdict, width=120))
    assert found[:2] == ["signing", "soon"]
    assert found[-1] == "published"
    names = {check.sign_domain.removesuffix(".example") for check in every_verdict}
    assert len(found) == len(every_verdict)
    assert set(found) == names


def test_rows_that_are_alike_keep_their_order():
    names = ["b.example", "a.example", "c.example"]
    checks = [check_of(Verdict.MISSING, sign_domain=name) for name in names]
    assert domains(table_of(*checks, width=120)) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("urgency", "words"),
    [
        (Urgency.SIGNING, "SIGNING NOW WITHOUT DNS"),
        (Urgency.SOON, "starts soon"),
        (Urgency.NONE, "-"),
    ],
)
def test_the_urgency_is_told(urgency, words):
    _, row = table_of(check_of(Verdict.MISSING, urgency=urgency), width=120).splitlines()
    assert row.endswith(f"  {words}")


@pytest.mark.parametrize("wanted", [Verdict.PUBLISHED, Verdict.MISSING])
def test_only_the_rows_that_need_attention(every_verdict, wanted):
    checks = [check for check in every_verdict if check.urgency is Urgency.NONE]
    text = table_of(*checks, width=120, wanted=wanted, only_attention=True)
    assert f"{wanted}.example" not in text
    assert len(domains(text)) == len(Verdict) - 1
    assert text.endswith("1 rows that need no attention are not shown; --format json shows all\n")


def test_how_many_are_not_shown_keeps_within_the_width():
    assert max(map(len, table_of(check_of(), width=40, only_attention=True).splitlines())) <= 40


def test_where_no_row_needs_attention_there_is_no_header():
    text = table_of(*[check_of()] * 300, only_attention=True)
    assert text == "300 rows that need no attention are not shown; --format json shows all\n"


def test_no_checks_are_no_table():
    assert table_of() == ""


@pytest.mark.parametrize(
    ("check", "wanted", "code"),
    [
        (check_of(Verdict.PUBLISHED), Verdict.PUBLISHED, "32"),
        (check_of(Verdict.MISSING), Verdict.MISSING, "32"),
        (check_of(Verdict.PUBLISHED), Verdict.MISSING, "31"),
        (check_of(Verdict.MISMATCH), Verdict.PUBLISHED, "31"),
        (check_of(Verdict.NO_ANSWER), Verdict.PUBLISHED, "33"),
        (check_of(Verdict.MISSING, urgency=Urgency.SIGNING), Verdict.PUBLISHED, "1;31"),
    ],
)
def test_the_verdict_has_its_colour(check, wanted, code):
    text = table_of(check, wanted=wanted, colour=True)
    assert f"\x1b[{code}m{check.finding.verdict}" in text
    assert Text.from_ansi(text).plain.rstrip() == table_of(check, wanted=wanted).rstrip()


HOSTILE_CHECK = check_of(
    Verdict.MISMATCH, HOSTILE, sign_domain=HOSTILE, selector=HOSTILE, fqdn=HOSTILE,
    start_date=HOSTILE, alias=HOSTILE,
    servers=(ServerFinding(HOSTILE, Finding(Verdict.MISMATCH, HOSTILE)),),
)  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("colour", [False, True])
def test_nothing_in_data_acts_in_the_table(width, colour):
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


@pytest.mark.parametrize("fmt", [CheckFormat.JSON, CheckFormat.JSONL])
def test_nothing_in_data_acts_in_json(fmt):
    text = text_of(fmt, [HOSTILE_CHECK])
    assert all(line.isascii() and line.isprintable() for line in text.split("\n"))
    found = json.loads(text)
    (item,) = found.get("items", [found])
    for key in ("sign_domain", "selector", "fqdn", "reason", "alias", "start_date"):
        assert item[key] == HOSTILE
    assert item["servers"] == [{"server": HOSTILE, "verdict": "mismatch", "reason": HOSTILE}]


def test_nothing_in_data_acts_in_csv():
    text = text_of(CheckFormat.CSV, [HOSTILE_CHECK])
    assert text.count("\n") == 2
    assert all(printable(line) == line for line in text.split("\n"))
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["start_date"] == row["alias"] == row["reason"] == printable(HOSTILE)


@settings(deadline=None, max_examples=60)
@given(text=st.text(st.characters(), max_size=200), width=st.integers(40, 200))
def test_any_text_keeps_within_the_width(text, width):
    check = check_of(
        Verdict.MALFORMED, text, sign_domain=text, selector=text, alias=text, start_date=text
    )
    for line in table_of(check, width=width).split("\n"):
        assert cell_len(line) <= width
        assert printable(line) == line


def test_json_holds_all_of_each_check(every_verdict):
    servers = (
        ServerFinding("ns1.test (192.0.2.1)", Finding(Verdict.PUBLISHED)),
        ServerFinding("ns2.test (2001:db8::1)", Finding(Verdict.NO_ANSWER, "it does not answer")),
    )
    check = check_of(
        Verdict.NO_ANSWER, "published elsewhere", servers=servers, alias="k.example.net",
        urgency=Urgency.SOON, enable=None, start_date=None,
    )  # fmt: skip
    found = json.loads(text_of(CheckFormat.JSON, [*every_verdict, check]))
    assert found["count"] == len(found["items"]) == len(every_verdict) + 1
    assert found["items"][-1] == {
        "sign_domain": "example.com",
        "selector": "s1",
        "fqdn": "s1._domainkey.example.com",
        "verdict": "no answer",
        "reason": "published elsewhere",
        "alias": "k.example.net",
        "urgency": "soon",
        "start_date": None,
        "enable": None,
        "servers": [
            {"server": "ns1.test (192.0.2.1)", "verdict": "published", "reason": ""},
            {
                "server": "ns2.test (2001:db8::1)",
                "verdict": "no answer",
                "reason": "it does not answer",
            },
        ],
    }


def test_json_lines_are_the_items_of_json(every_verdict):
    lines = text_of(CheckFormat.JSONL, every_verdict).splitlines()
    items = json.loads(text_of(CheckFormat.JSON, every_verdict))["items"]
    assert [json.loads(line) for line in lines] == items


def test_no_checks_are_no_items():
    assert json.loads(text_of(CheckFormat.JSON, [])) == {"items": [], "count": 0}
    assert text_of(CheckFormat.JSONL, []) == ""
    assert text_of(CheckFormat.CSV, []).count("\n") == 1


def test_csv_is_read_back(every_verdict):
    finding = ServerFinding("ns.test", Finding(Verdict.PUBLISHED))
    check = check_of(Verdict.MALFORMED, 'a "b", c; d', servers=(finding, finding), enable=False)
    found = list(csv.DictReader(io.StringIO(text_of(CheckFormat.CSV, [*every_verdict, check]))))
    assert [row["verdict"] for row in found[:-1]] == [one.finding.verdict for one in every_verdict]
    assert found[-1] == {
        "sign_domain": "example.com",
        "selector": "s1",
        "fqdn": "s1._domainkey.example.com",
        "verdict": "malformed",
        "reason": 'a "b", c; d',
        "alias": "",
        "urgency": "",
        "start_date": "2026-03-01T00:00+09:00",
        "enable": "false",
        "servers": "2",
    }


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r="])
def test_no_cell_of_csv_is_a_formula(start):
    text = f"{start}cmd|' /C calc'!A0"
    check = check_of(
        Verdict.MISMATCH, text, sign_domain=text, selector=text, fqdn=text, start_date=text,
        alias=text,
    )  # fmt: skip
    (_, cells) = csv.reader(io.StringIO(text_of(CheckFormat.CSV, [check])))
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)
    assert sum("calc" in cell for cell in cells) == 6


ANY = st.text(st.characters(), max_size=40)


@given(st.lists(st.tuples(ANY, ANY, ANY), max_size=4))
def test_any_text_comes_back_from_every_format(texts):
    checks = [
        check_of(Verdict.MALFORMED, reason, start_date=date, alias=alias)
        for reason, date, alias in texts
    ]
    items = json.loads(text_of(CheckFormat.JSON, checks))["items"]
    assert [(item["reason"], item["start_date"], item["alias"]) for item in items] == texts
    rows = list(csv.DictReader(io.StringIO(text_of(CheckFormat.CSV, checks))))
    assert [row["reason"].removeprefix("'") for row in rows] == [
        printable(reason).removeprefix("'") for reason, _, _ in texts
    ]
