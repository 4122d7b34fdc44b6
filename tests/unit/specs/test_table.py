"""Spec files in CSV: what is loaded, and that every mistake is reported with its place."""

from __future__ import annotations

import contextlib
import csv
import io
import time
import tracemalloc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import InputError
from dkimctl.formats.checks import CHECK_COLUMNS
from dkimctl.formats.data import CsvRenderer
from dkimctl.formats.keys import KEY_COLUMNS
from dkimctl.formats.renderer import render_all
from dkimctl.formats.results import RESULT_COLUMNS, result_row
from dkimctl.models import DnsRecord, DomainSpec, Outcome, Registration, Result
from dkimctl.specs.entries import ENTRY_FIELDS
from spec_files import load_specs

A, B = "a.example", "b.example"


def load(text: str | bytes, **options) -> list[DomainSpec]:
    data = text if isinstance(text, bytes) else text.encode()
    return load_specs(data, "f.csv", **options)


def refusals(text: str | bytes) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(text)
    assert all(problem.hint for problem in caught.value.problems)
    return [str(problem).removeprefix("f.csv:") for problem in caught.value.problems]


def hint(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        load(text)
    return caught.value.hint


def test_a_row_has_the_fields_of_an_entry_in_any_order():
    specs = load(
        "enable,selector,sign_domain,key_len,start_date,default,replaces\n"
        "false,s2,Mail.Example.COM.,2048,2027-07-01T00:00+09:00,0,s1\n"
        ",,example.com,,,,\n"
    )
    assert specs == [
        DomainSpec("mail.example.com", "s2", 2048, "2027-07-01T00:00+09:00", 0, False, "s1"),
        DomainSpec("example.com"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "sign_domain,selector\na.example,s1\nb.example,s2\n",
        "sign_domain;selector\r\na.example;s1\r\nb.example;s2\r\n",
        "sign_domain\tselector\ra.example\ts1\rb.example\ts2",
        "\ufeffsign_domain,selector\na.example,s1\nb.example,s2\n",
        '"sign_domain";"selector"\n"a.example";"s1"\n"b.example";s2\n',
        " sign_domain , selector \n\n a.example ,\ts1\n,\n  ,  \nb.example,s2\n",
        "\n\nselector,sign_domain,,\ns1,a.example,,\ns2,b.example,,,,\n",
    ],
)
def test_the_ways_in_which_programs_write_a_table(text):
    assert load(text) == [DomainSpec(A, "s1"), DomainSpec(B, "s2")]


def test_booleans_may_be_as_spreadsheets_write_them():
    rows = [f"{domain}.example,{word}" for domain, word in zip("abcd", _BOOLEANS, strict=True)]
    specs = load("sign_domain,enable\n" + "\n".join(rows))
    assert [spec.enable for spec in specs] == [True, True, False, False]
    assert refusals(f"sign_domain,enable\n{A},Yes")[0].startswith('2:11: enable: "Yes" is not')


_BOOLEANS = ["true", "TRUE", "false", "FALSE"]


def test_the_defaults_of_the_profile_are_for_empty_cells():
    [one, other] = load(
        f"sign_domain,key_len\n{A},1024\n{B},\n", defaults={"key_len": 2048, "enable": False}
    )
    assert one == DomainSpec(A, key_len=1024, enable=False)
    assert other == DomainSpec(B, key_len=2048, enable=False)


@pytest.mark.parametrize("columns", [RESULT_COLUMNS, KEY_COLUMNS, CHECK_COLUMNS])
def test_the_columns_of_our_own_output_are_known(columns):
    row = ",".join(A if column == "sign_domain" else "" for column in columns)
    warnings = []
    assert load(f"{','.join(columns)}\n{row}\n", warn=warnings.append) == [DomainSpec(A)]
    assert not warnings


@pytest.mark.parametrize(
    "header",
    ["Domain,Selector,Bits", "Signing Domain;selector;key-length", "DOMAIN\tSELECTOR\tKey Len"],
)
def test_headings_may_be_as_people_write_them(header):
    separator = next(one for one in ",;\t" if one in header)
    assert load(f"{header}\n{separator.join((A, 's1', '2048'))}\n") == [DomainSpec(A, "s1", 2048)]


@pytest.mark.parametrize("first", ["sep=;", "sep=;\r", '"sep=;"'])
def test_a_first_line_may_name_the_separator(first):
    text = f"{first}\nsign_domain;selector, or so;key_len\n{A};;2048\n"
    assert load(text) == [DomainSpec(A, key_len=2048)]
    assert refusals(text.replace("2048", "1"))[0].startswith("3:12: key_len")


def test_unknown_columns_are_left_out_and_named():
    warnings = []
    text = f"sign_domain,selectr,owner,\n{A},x,me,\n"
    assert load(text, warn=warnings.append) == [DomainSpec(A)]
    assert warnings == ['f.csv: unknown columns are left out: "selectr", "owner"']


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1:1: the file is empty"]),
        ("selector\ns1\n", ["1:1: the column sign_domain is missing"]),
        (
            "sign_domain,selector, sign_domain\n",
            ['1:22: the column "sign_domain" is already column 1'],
        ),
        ("sign_domain\na_b.example\n", ['2:1: sign_domain: "a_b.example" contains']),
        ("sign_domain,key_len\na.example\n", ["2:1: the row has 1 cell, and the header 2"]),
        ("sign_domain\na.example,s1\n", ["2:11: the row has 2 cells, and the header 1"]),
        ("sign_domain,selector\n,s1\n", ["2:1: an entry needs a sign_domain"]),
        (
            'sign_domain,message,key_len\na.example,"x\n""y\n",512\n"\nb",,\n',
            ['4:3: key_len: "512" is not 1024 or 2048', '5:1: sign_domain: "\\x0ab" contains'],
        ),
        ("sign_domain,default\na.example,-1\n", ['2:11: default: "-1" is not a decimal number']),
        ("sign_domain\n=A1\n", ['2:1: sign_domain: "=A1" contains "="']),
        ("sign_domain\na.example\na.example\n", ['3:1: "a.example" is already on line 2']),
        (
            "sign_domain,selector\na.example,s\na.example,\n",
            ['3:1: "a.example" has entries with and without a selector (line 2)'],
        ),
        (
            "sign_domain,selector,replaces\na.example,,s1\n",
            ["2:1: an entry with replaces: needs a selector of its own"],
        ),
        ("sign_domain,a\0b\n", ["1:14: the character U+0000 is not allowed"]),
        (b"sign_domain\nb\xfccher.example\n", ["2:2: byte 0xfc is not UTF-8"]),
        ('sign_domain\n"a.example\nb.example\n', ["2:1: a cell in quotes has no end"]),
        ('sign_domain,type\na.example,"x"y\n', ["2:11: text after the closing quote of a cell"]),
        (
            "sign_domain\na.example\n" + "x" * 1025,
            ['3:1: sign_domain: "' + "x" * 60 + '…" is longer than 253 octets'],
        ),
        (
            'sign_domain,value\na.example,"' + "x" * 131_073 + '"\n',
            ["2:11: a cell in quotes has no end, or a cell is longer than 131,072"],
        ),
        ("sign_domain\n" + "," * 1_048_577, ["2:1: a row of more than 1,048,576 characters"]),
        ("sign_domain" + "," * 256, ["1:268: more than 256 columns"]),
    ],
)
def test_every_mistake_has_its_place(text, expected):
    problems = refusals(text)
    assert len(problems) == len(expected), problems
    for problem, words in zip(problems, expected, strict=True):
        assert problem.startswith(words)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("start_date", "46204"),
        ("start_date", "2027/07/01 0:00"),
        ("start_date", "7/1/2027 0:00"),
        ("selector", "1E+05"),
        ("replaces", "1.5E+10"),
        ("selector", "2027/07/01"),
        ("sign_domain", "#N/A"),
    ],
)
def test_what_a_spreadsheet_may_have_changed_is_said(field, value):
    cells = {"sign_domain": A, "selector": "s9", field: value}
    text = ";".join(cells) + "\n" + ";".join(f'"{cell}"' for cell in cells.values())
    [problem] = refusals(text)
    assert f'{field}: "{value}" ' in problem
    assert hint(text).startswith("if a spreadsheet changed it, format the column as text")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("sign_domain\na.example\n".encode("utf-16"), "the file is in UTF-16"),
        (b"- a.example\n- b.example\n", "the file is a spec file (YAML), not a table (CSV)"),
        (b"a.example\nb.example\n", "the file is a plain list of domains, not a table (CSV)"),
        (b"a.example,s1\nb.example,s1\n", "the column sign_domain is missing"),
        (b'{"items": [], "count": 0}', "the file is output of dkimctl, in JSON, not a table"),
        (b"<!doctype html>\n", "the file is an HTML or XML document, not a table"),
    ],
)
def test_another_file_is_called_what_it_is(data, what):
    [problem] = refusals(data)
    assert problem.startswith(f"1:1: {what}")


domains = st.from_regex(r"[a-z][a-z0-9]{0,8}(\.[a-z][a-z0-9]{0,8}){1,2}", fullmatch=True)
entries = st.fixed_dictionaries(
    {
        "sign_domain": domains,
        "selector": st.none() | st.from_regex(r"[A-Za-z0-9]{1,20}", fullmatch=True),
        "key_len": st.sampled_from([None, 1024, 2048]),
        "start_date": st.sampled_from([None, "2027-07-01T00:00+09:00", "1999-12-31T23:59-03:30"]),
        "default": st.none() | st.integers(0, 999_999_999),
        "enable": st.sampled_from([None, True, False]),
    }
)
lists = st.lists(entries, max_size=8, unique_by=lambda entry: entry["sign_domain"])
layouts = st.fixed_dictionaries(
    {
        "delimiter": st.sampled_from(",;\t"),
        "lineterminator": st.sampled_from(["\n", "\r\n"]),
        "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    }
)


@given(lists, layouts, st.booleans(), st.permutations(list(ENTRY_FIELDS)[:-1]))
def test_a_table_says_the_same_as_yaml(rows, layout, has_mark, columns):
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, **layout)
    writer.writeheader()
    writer.writerows(
        row | {"enable": "" if row["enable"] is None else str(row["enable"]).upper()}
        for row in rows
    )
    stated = [{key: value for key, value in row.items() if value is not None} for row in rows]
    from_yaml = load_specs(yaml.safe_dump(stated).encode(), "f.yaml")
    assert load(("\ufeff" if has_mark else "") + text.getvalue()) == from_yaml
    assert from_yaml == [DomainSpec(**row) for row in rows]


@given(lists, st.text(), st.sampled_from(Outcome))
def test_our_own_output_is_an_input(rows, message, outcome):
    results = [
        Result(
            Registration(
                **row,
                record=DnsRecord("s._domainkey.a.example", "TXT", "v=DKIM1; p=AAAA"),
                regist_date="2026-01-01T00:00+00:00",
                code="201",
                message=message,
            ),
            outcome,
            message,
        )
        for row in rows
    ]
    written = "".join(render_all(CsvRenderer(RESULT_COLUMNS, result_row), results))
    assert load(written) == [DomainSpec(**row) for row in rows]


@given(
    st.lists(
        st.lists(st.text(alphabet='ab"\n,é', max_size=6), min_size=3, max_size=3),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_the_place_of_a_cell_is_where_a_writer_has_put_it(rows, quoting):
    text = io.StringIO()
    writer = csv.writer(text, quoting=quoting, lineterminator="\n")
    writer.writerow(["sign_domain", "message", "reason", "type", "key_len"])
    places = []
    for number, row in enumerate(rows):
        writer.writerow([f"d{number}.example", *row, "4096"])
        written = text.getvalue()
        end = written.rindex("4096") - (quoting == csv.QUOTE_ALL)
        places.append((written.count("\n", 0, end) + 1, end - written.rfind("\n", 0, end)))
    with pytest.raises(InputError) as caught:
        load(text.getvalue())
    assert [(problem.line, problem.column) for problem in caught.value.problems] == places


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [b'"', b"a.example,\n", b'"\n",', b"x,", b"\n", b",,\n", b'"a"b', "😀".encode(), b"a.a,b_b\n"],
)
def test_a_file_that_is_large_and_wrong_is_refused_soon(row):
    data = b"sign_domain,value\n" + row * ((16 << 20) // len(row))
    start = time.process_time()
    tracemalloc.start()
    with contextlib.suppress(InputError):
        load(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100 << 20
    assert time.process_time() - start < 20
