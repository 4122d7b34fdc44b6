"""Results as JSON, JSON Lines and CSV."""

from __future__ import annotations

import csv
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dkimctl.formats.data import CsvRenderer
from dkimctl.formats.renderer import Format, render_all
from dkimctl.models import DnsRecord, Outcome, Registration, Result
from documents import PAGES
from rendering import render_text


def parsed(*results):
    return json.loads(render_text(Format.JSON, results))


def test_fields_that_the_service_omitted_are_omitted():
    taken = Result(Registration("example.com", "s1", code="409"), Outcome.TAKEN)
    assert parsed(taken)["items"] == [
        {
            "result": {"code": "409"},
            "sign_domain": "example.com",
            "selector": "s1",
            "outcome": "taken",
        }
    ]


@pytest.mark.parametrize("fmt", [Format.JSON, Format.JSONL])
@given(text=st.text(st.characters()))
@example(text="\x7f")
def test_any_text_is_read_back_and_output_is_printable_ascii(result, fmt, text):
    record = DnsRecord(text, text, text)
    [*lines] = render_text(fmt, [result(message=text, record=record)]).split("\n")
    assert all(char.isascii() and char.isprintable() for line in lines for char in line)
    item = json.loads(lines[1] if fmt is Format.JSON else lines[0])
    assert item["result"]["message"] == text
    assert item["setting_values"] == {"fqdn": text, "type": text, "value": text}


STARTS = "=+-@\uff1d\uff0b\uff0d\uff20"  # the last four in full width


TEXTS = st.text(st.sampled_from(f"{STARTS};|,\t\r\n\"' \xa0\u3000a1\\"), max_size=12)


[UNDO] = re.findall(r"^    (re\.sub\(.*, cell\))$", PAGES["dns-recipes.md"], re.MULTILINE)


def render(*cells):
    """A line of CSV."""
    return "".join(render_all(CsvRenderer([], lambda item: item), [cells])).split("\n", 1)[1]


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONE])
@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_no_cell_starts_a_formula_however_a_spreadsheet_splits_the_line(separator, quoting, texts):
    for row in csv.reader([render(*texts)], delimiter=separator, quoting=quoting):
        for cell in row:
            # Some programs drop quotes in the middle of a cell, and spaces around it.
            assert not cell.lstrip(' "\xa0\u3000').startswith(tuple(STARTS)), cell


@pytest.mark.parametrize(
    ("text", "cell"),
    [("=1+1", "'=1+1"), ("\uff1d1", "'\uff1d1"), (" @x", " '@x"), ("\t=1", "\\x09=1"),
     ("no;=1", "no;'=1"), ('a"=b', "a\"'=b"), ("'=1", "''=1"),
     ("a-b = c; d - e", "a-b = c; d - e")],
)  # fmt: skip
def test_formulas_get_a_quote_and_other_text_does_not(text, cell):
    assert list(csv.reader([render(text)])) == [[cell]]


@given(text=TEXTS)
def test_a_script_can_undo_the_quotes_as_documented(text):
    visible = re.sub("[\t\r\n]", lambda match: f"\\x{ord(match[0]):02x}", text)
    [[cell, _]] = csv.reader([render(text, "")], strict=True)
    assert eval(UNDO, {"re": re, "cell": cell}) == visible
