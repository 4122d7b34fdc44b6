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

from dkimctl.errors import InputError, UsageError
from dkimctl.models.registration import DnsRecord, DomainSpec, Outcome, Registration, Result
from dkimctl.render.checks import CHECK_COLUMNS
from dkimctl.render.data import CsvRenderer
from dkimctl.render.key_list_items import KEY_COLUMNS
from dkimctl.render.renderer import render_all
from dkimctl.render.results import RESULT_COLUMNS, result_row
from dkimctl.render.stage_items import STAGE_COLUMNS
from dkimctl.specs.csv_reading import ANSWER_COLUMNS
from dkimctl.specs.fields import ENTRY_FIELDS
from dkimctl.specs.loading import load_specs, read_specs

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


def test_a_header_alone_has_no_entries():
    assert load("sign_domain") == []
    assert load("selector,sign_domain\r\n") == []


@pytest.mark.parametrize("word", ["20260101", "on", "0123", "1e3", "true", "TRUE"])
def test_selectors_are_sent_as_written(word):
    assert load(f"sign_domain,selector\n{A},{word}\n")[0].selector == word


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


@pytest.mark.parametrize("columns", [RESULT_COLUMNS, KEY_COLUMNS, CHECK_COLUMNS, STAGE_COLUMNS])
def test_the_columns_of_our_own_output_are_known(columns):
    assert set(columns) <= ANSWER_COLUMNS | set(ENTRY_FIELDS)
    row = ",".join(A if column == "sign_domain" else "" for column in columns)
    assert load(f"{','.join(columns)}\n{row}\n") == [DomainSpec(A)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1:1: the file is empty"]),
        ("\n\n", ["1:1: the file is empty"]),
        ("selector\ns1\n", ["1:1: the column sign_domain is missing"]),
        (
            "sign_domain,selectr,x\na.example,,\n",
            ['1:13: a spec file has no column "selectr"', '1:21: a spec file has no column "x"'],
        ),
        (
            "Domain\na.example\n",
            ['1:1: a spec file has no column "Domain"', "1:1: the column sign_domain is missing"],
        ),
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
        ('sign_domain,type\na.example,"x"y\n', ["2:14: text after the closing quote of a cell"]),
        ("sign_domain\na.example\n" + "x" * 1025, ["3:1: sign_domain is longer than 1,024"]),
        (
            "sign_domain,value\na.example," + "x" * 131_073,
            ["2:11: a cell is longer than 131,072 characters"],
        ),
        (
            'sign_domain,value\na.example,"' + "x" * 131_073 + '"\n',
            ["2:11: a cell in quotes has no end, or is longer than 131,072 characters"],
        ),
        (
            "sign_domain\n" + "," * 1_048_577,
            ["2:1: a row is longer than 1,048,576 characters"],
        ),
        ("sign_domain" + "," * 256, ["1:268: more than 256 columns"]),
    ],
)
def test_every_mistake_has_its_place(text, expected):
    problems = refusals(text)
    assert len(problems) == len(expected), problems
    for problem, words in zip(problems, expected, strict=True):
        assert problem.startswith(words)


def test_problems_are_all_reported_and_counted():
    rows = "".join(f"d{number}.example,x_{number}\n" for number in range(1234))
    problems = refusals(f"sign_domain,selector\n{rows}")
    assert len(problems) == 1001
    assert "234 more problems from here on" in problems[-1]


@pytest.mark.parametrize(
    ("field", "value", "what", "advice"),
    [
        ("start_date", "46204", "a number of days", "write 2026-07-01T00:00+09:00"),
        ("start_date", "46204.375", "a number of days", "write 2026-07-01T00:00+09:00"),
        ("start_date", "2027/07/01 0:00", "own format", "as 2027-07-01T00:00+09:00"),
        ("start_date", "7/1/2027 0:00", "own format", "as 2027-07-01T00:00+09:00"),
        ("start_date", "2027-07-01 00:00", "not a date and time with an offset", "write 2027-07"),
        ("selector", "1E+05", "is a number that the spreadsheet shortened", "as text"),
        ("selector", "2,02607E+11", "is a number that the spreadsheet shortened", "as text"),
        ("replaces", "1.5E+10", "is a number that the spreadsheet shortened", "as text"),
        ("selector", "2027/07/01", "is a date that the spreadsheet made of it", "as text"),
        ("selector", "#NAME?", "is the error of a formula", "correct it"),
        ("sign_domain", "#N/A", "is the error of a formula", "correct it"),
    ],
)
def test_what_a_spreadsheet_changed_is_said(field, value, what, advice):
    cells = {"sign_domain": A, "selector": "s9", field: value}
    text = ";".join(cells) + "\n" + ";".join(f'"{cell}"' for cell in cells.values())
    [problem] = refusals(text)
    assert f'{field}: "{value}" ' in problem
    assert what in problem
    assert advice in hint(text)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("sign_domain\na.example\n".encode("utf-16"), "is in UTF-16"),
        (b"PK\x03\x04\x14\0\x06\0", "is binary, such as a spreadsheet"),
        (b"- a.example\n- b.example\n", "is a spec file (YAML), not a table (CSV)"),
        (b"a.example\nb.example\n", "is a plain list of domains, not a table (CSV)"),
        (b"a.example,s1\nb.example,s1\n", "has no header"),
        (b'{"items": [], "count": 0}', "is a saved result, in JSON, not a table"),
        (b"<!doctype html>\n", "is an HTML or XML document, not a table"),
    ],
)
def test_another_file_is_called_what_it_is(data, what):
    [problem] = refusals(data)
    assert problem.startswith(f"1:1: the file {what}")


def test_other_encodings_are_to_be_saved_as_csv_utf_8():
    assert "'CSV UTF-8'" in hint(b"sign_domain\nb\xfccher.example\n")


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


pieces = st.sampled_from(
    ["sign_domain", "selector", "key_len", "value", A, "s1", "2048", "é", "😀", "=1", "'", " "]
)
marks = st.sampled_from([",", ",", ";", "\t", '"', '""', "\n", "\n", "\r\n", "\r", "\0", "%"])


@given(st.lists(pieces | marks, max_size=40).map("".join))
def test_any_mixture_is_loaded_or_refused_in_its_place(text):
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for start in ("", "sign_domain,selector\n"):
        try:
            load(start + text)
        except InputError as error:
            for problem in error.problems:
                line = [*start.splitlines(), *lines][problem.line - 1]
                assert 1 <= problem.column <= len(line) + 1


@given(st.binary())
def test_any_bytes_are_loaded_or_refused(data):
    for start in (b"", b"sign_domain,selector\n"):
        with contextlib.suppress(InputError):
            load(start + data)


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
def test_a_large_file_takes_two_seconds_at_most():
    text = "".join(f"d{number}.example,s1,2048,true\n" for number in range(100_000))
    start = time.process_time()
    assert len(load("sign_domain,selector,key_len,enable\n" + text)) == 100_000
    assert time.process_time() - start < 2


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


class TestSeveralFiles:
    @pytest.fixture
    def read(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

        def read(*files: str, domains=(), **options):
            paths = []
            for number, text in enumerate(files):
                path = tmp_path / f"{number}.{'csv' if text.startswith('sign') else 'yaml'}"
                path.write_text(text)
                paths.append(path.name)
            return read_specs(*paths, domains=domains, **options)

        return read

    def test_entries_are_in_the_order_of_the_files_and_then_of_the_domains(self, read):
        specs = read(
            "defaults: {key_len: 1024}\ndomains: [a.example]",
            "sign_domain,enable\nb.example,true\n",
            domains=["C.example."],
            defaults={"key_len": 2048},
        )
        assert specs == [
            DomainSpec(A, key_len=1024),
            DomainSpec(B, key_len=2048, enable=True),
            DomainSpec("c.example", key_len=2048),
        ]

    def test_the_defaults_of_a_file_are_for_its_own_entries(self, read):
        specs = read("- a.example", "defaults: {key_len: 2048}\ndomains: [b.example]")
        assert specs == [DomainSpec(A), DomainSpec(B, key_len=2048)]

    @pytest.mark.slow
    def test_all_files_together_have_at_most_250_000_entries(self, read):
        rows = "".join(f"d{number}.a\n" for number in range(250_000))
        assert len(read(f"sign_domain\n{rows}")) == 250_000
        with pytest.raises(InputError) as caught:
            read("- a.example", f"sign_domain\n{rows}")
        assert str(caught.value) == "1.csv:250001:1: more than 250,000 entries"

    def test_mistakes_of_all_files_are_reported(self, read):
        with pytest.raises(InputError) as caught:
            read("- a_b.example\n- c.example", "sign_domain\nb_c.example\n", "- c.example")
        assert [str(problem)[:10] for problem in caught.value.problems] == [
            "0.yaml:1:3", "1.csv:2:1:", "2.yaml:1:3",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            (
                "- a.example",
                "sign_domain\na.example",
                '1.csv:2:1: "a.example" is already on line 1',
            ),
            (
                "sign_domain,selector\n\na.example,s1",
                "- {sign_domain: a.example, selector: S1}",
                '1.yaml:1:3: "a.example" with selector "S1" is already on line 3',
            ),
            (
                "- a.example",
                "sign_domain,selector\na.example,s1",
                '1.csv:2:1: "a.example" has entries with and without a selector (line 1',
            ),
        ],
    )
    def test_repetitions_name_both_files(self, read, first, second, expected):
        with pytest.raises(InputError) as caught:
            read(first, second)
        other = "0.csv" if first.startswith("sign") else "0.yaml"
        assert str(caught.value).rstrip(")") == f"{expected} of {other}"

    @pytest.mark.parametrize(
        ("domains", "expected"),
        [
            ([A], 'in --domain: "a.example" is already on line 1 of 0.yaml'),
            ([B, "B.example."], "in --domain: b.example is named twice"),
            (["x"], 'in --domain: "x" is a single label'),
            ([""], "in --domain: "),
        ],
    )
    def test_wrong_domains_are_refused(self, read, domains, expected):
        with pytest.raises(UsageError) as caught:
            read("- a.example", domains=domains)
        assert str(caught.value).startswith(expected)

    def test_a_file_is_named_once(self):
        with pytest.raises(UsageError, match="- is named twice"):
            read_specs("-", "a.yaml", "-")

    def test_without_files_there_are_only_domains(self):
        assert read_specs(domains=[A, B]) == [DomainSpec(A), DomainSpec(B)]
