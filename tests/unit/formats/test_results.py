"""What all formats have in common."""

from __future__ import annotations

import re
from itertools import count, islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dkimctl.formats.renderer import NOT_FOR_DNS, PER_ZONE, Format, TableLayout, render_all
from dkimctl.formats.results import open_results
from dkimctl.formats.table import code_cell as cell
from dkimctl.models import Outcome, Registration, Result
from rendering import render_table, render_text
from terminals import is_harmless

LIGHT = [fmt for fmt in Format if fmt not in (Format.TABLE, Format.MARKDOWN, *PER_ZONE)]


def whole(fmt, results):
    """The whole output of a format for results in the zone `example`."""
    return render_text(fmt, results, zones=["example"] if fmt in PER_ZONE else ())


@pytest.mark.parametrize("fmt", LIGHT)
def test_output_is_streamed(fmt, result):
    endless = (result(sign_domain=f"d{number}.example") for number in count())
    text = "".join(islice(render_all(open_results(fmt), endless), 30))
    assert "d0.example" in text
    assert "d6.example" in text


@pytest.mark.parametrize("fmt", Format)
def test_dns_formats_hold_only_publishable_records(fmt, every_outcome):
    text = whole(fmt, every_outcome)
    assert re.search(r"created(\.example)?\b", text)
    assert text.endswith("\n")
    if fmt not in NOT_FOR_DNS:
        for outcome in ("pending", "taken", "invalid", "unusable", "failed", "unknown"):
            assert outcome not in text
    assert "\x1b" not in text


ABSENT = dict.fromkeys(("selector", "key_len", "start_date", "record", "code", "message"))


@pytest.fixture
def planned(result):
    """The results of entries that would be created."""
    return lambda *domains: [
        result(Outcome.PENDING, **(ABSENT | {"sign_domain": domain})) for domain in domains
    ]


def plan_of(results, **layout):
    return render_table(results, is_plan=True, **layout).splitlines()


def test_at_most_twenty_names_are_listed_the_largest_first(planned):
    domains = [f"{n}.d{zone}.example" for zone in range(30) for n in range(2 + (zone == 29))]
    lines = plan_of(planned(*domains))
    start = next(n for n, line in enumerate(lines) if line.startswith("UNDER"))
    assert lines[start + 1].split() == ["d29.example", "3"]
    assert lines[start + 21] == "… and 10 more"


MOST = 65_536  # characters of a comment at GitHub
HOSTILE = (
    "\x1b]0;x\x07`` | <img src=x> \\| \\\\| ](javascript:1)\r\n\n# H\n```\n- [x] \u202e@all #123 "
    ":tada: www.example.com https://example.com </details> <!-- \\"
)


def parsed(text: str) -> list:
    return MarkdownIt("gfm-like", {"linkify": False}).parse(text)


def render(*results: Result) -> str:
    return render_text(Format.MARKDOWN, results, layout=TableLayout(is_plan=True))


def known(outcome: Outcome, domain: str = "example.com", reason: str = "", **fields) -> Result:
    return Result(Registration(domain, "s1", **fields), outcome, reason)


def tables(text: str) -> list[list[list[str]]]:
    """The text of the cells of each row of each table, as a parser reads them."""
    found: list[list[list[str]]] = []
    for token in parsed(text):
        match token.type:
            case "table_open":
                found.append([])
            case "tr_open":
                found[-1].append([])
            case "inline" if token.level > 3:  # in a cell
                found[-1][-1].append(" ".join(one.content for one in token.children))
    return found


@pytest.mark.parametrize("name", ["d", "ü" * 30, "`" * 30])
def test_a_comment_holds_it_and_the_rest_is_counted(name):
    results = [
        known(outcome, f"{name}{number}.example", reason)
        for outcome, reason in ((Outcome.DIFFERS, "x|" * 50), (Outcome.PENDING, ""))
        for number in range(5_000)
    ]
    text = render(*results)
    assert MOST * 0.9 < len(text.encode()) < MOST - 2_000
    differing, *others = tables(text)
    assert f"… and {5_000 - len(differing) + 1:,} more;" in text
    assert not others
    assert "… and 5,000 more;" in text


def assert_is_code(text: str, hostile: str) -> None:
    """Only our own elements are in the document, and all else is in code."""
    flat = [child for token in parsed(text) for child in (token, *(token.children or ()))]
    kinds = {token.type.removesuffix("_open").removesuffix("_close") for token in flat}
    assert kinds <= {
        "heading", "inline", "text", "paragraph", "strong", "table", "thead", "tbody", "tr", "th",
        "td", "code_inline", "html_block",
    }, kinds  # fmt: skip
    html = {token.content.split("<summary>")[0].strip() for token in flat if "html" in token.type}
    assert html <= {"<details>", "</details>"}
    assert {len(row) for table in tables(text) for row in table} <= {4, 5}
    ours = "".join(token.content for token in flat if token.type == "text")
    assert not set(hostile) & set("@<>`|\\#*_[]") & set(ours)
    assert all(map(is_harmless, text.splitlines()))


@pytest.mark.parametrize("field", ["sign_domain", "selector", "start_date", "reason"])
@given(st.text() | st.text(alphabet="`|\\ a@<!-:#\n", max_size=12))
@example(HOSTILE)
@example(HOSTILE * 30)
def test_nothing_in_it_acts(field, text):
    fields = {"sign_domain": "a.example", "selector": "s1", "start_date": None} | {field: text}
    reason = fields.pop("reason", "")
    results = [
        Result(Registration(**fields), outcome, reason)
        for outcome in (Outcome.DIFFERS, Outcome.EXISTS)
    ]
    assert_is_code(render(*results), text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("a|b", r"`a\|b`"),
        (r"a\|b\\|", r"`a\` `\|b\\` `\|`"),  # else the pipe would end the cell at GitHub
        ("`|`", r"`` `\|` ``"),
    ],
)
def test_a_pipe_does_not_end_a_cell(text, expected):
    assert cell(text) == expected
