"""Spec files: what is loaded, and that every mistake is reported with its place."""

from __future__ import annotations

import contextlib
import re
import time
import tracemalloc
from pathlib import Path

import pytest
import yaml

from dkimctl.errors import InputError, UsageError
from dkimctl.models import DomainSpec
from dkimctl.specs.spec_file import read_specs
from spec_files import load_specs

FIXTURES = Path(__file__).parents[2] / "fixtures" / "specs"

# Each malformed file, with the line and column of every problem in it.
AT_THE_START = (
    "empty", "comments-only", "null-document", "utf-16", "directive", "no-domains",
    "csv-without-header", "plain-list-utf-16", "saved-result", "saved-lines", "zone-file",
    "html", "spreadsheet", "config",
)  # fmt: skip
MALFORMED = {name: [(1, 1)] for name in AT_THE_START} | {
    "binary": [(2, 3)], "latin-1": [(2, 4)], "utf-16-without-mark": [(1, 2)],
    "bad-byte-after-mark": [(1, 3)], "escape-character": [(1, 17)], "unclosed-bracket": [(4, 1)],
    "tab-indentation": [(2, 1)], "colon-in-text": [(1, 27)], "unclosed-quote": [(2, 1)],
    "anchor-and-alias": [(1, 16), (2, 16)],
    "billion-laughs": [(1, 1), (1, 4), (2, 1), (2, 4), (3, 10)], "tag": [(1, 3), (1, 3), (2, 16)],
    "merge-key": [(2, 3)], "two-documents": [(2, 1)], "complex-key": [(1, 5)],
    "repeated-key": [(3, 3)], "repeated-top-key": [(2, 1)], "unknown-key": [(2, 3)],
    "unknown-top-key": [(1, 1), (1, 1)], "unknown-default": [(2, 3), (3, 3)],
    "nested-too-deep": [(2, 3), (2, 10)], "list-as-value": [(1, 16)],
    "mapping-as-value": [(2, 13)], "list-as-entry": [(1, 3)], "domains-not-a-list": [(1, 10)],
    "defaults-not-a-mapping": [(2, 11)], "no-sign-domain": [(2, 3)], "null-entry": [(2, 2)],
    "null-values": [(2, 13), (3, 11), (4, 15), (5, 12), (6, 11)],
    "key-len": [(2, 12), (4, 12), (6, 12), (8, 12)],
    "default": [(2, 12), (4, 12), (6, 12), (8, 12), (10, 12)],
    "enable": [(2, 11), (4, 11), (6, 11)],
    "start-date": [(2, 15), (4, 15), (6, 15), (8, 15), (10, 15), (12, 15), (14, 15)],
    "not-domains": [(line, 3) for line in range(1, 17)],
    "not-selectors": [(line, 13) for line in range(2, 18, 2)], "name-too-long": [(1, 3), (2, 3)],
    "repeated-pair": [(2, 3)], "repeated-domain": [(3, 3)],
    "with-and-without-selector": [(2, 3), (4, 3)],
    "replaces": [(1, 3), (2, 3), (5, 13), (8, 13), (11, 12)], "json": [(2, 44)],
    "domain-as-key": [(1, 3), (1, 3)], "uneven-indentation": [(2, 2)], "equals-sign": [(1, 3)],
    "wildcard": [(2, 4)], "wildcard-quoted": [(1, 3)], "no-space-after-colon": [(1, 3), (2, 3)],
    "typographic-quotes": [(1, 3)], "email-addresses": [(1, 1), (2, 1)],
    "urls": [(1, 1), (2, 1)],
}  # fmt: skip


def load(text: str, **options) -> list[DomainSpec]:
    return load_specs(text.encode(), "f.yaml", **options)


def refusals(text: str) -> list[str]:
    """The places and problems of what is refused."""
    try:
        load(text)
    except InputError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.interface("2.3", "key_len", "enable", "mandatory")
@pytest.mark.interface("8", "key-lengths")
@pytest.mark.parametrize("name", MALFORMED)
def test_every_mistake_in_a_malformed_file_has_its_place(name):
    path = FIXTURES / f"{name}.yaml"
    with pytest.raises(InputError) as caught:
        read_specs(str(path))
    problems = caught.value.problems
    assert [(problem.line, problem.column) for problem in problems] == MALFORMED[name]
    assert all(str(problem).startswith(f"{path}:") and problem.hint for problem in problems)


@pytest.fixture
def without_libyaml(monkeypatch):
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)


@pytest.mark.usefixtures("without_libyaml")
@pytest.mark.parametrize("escape", ["UFFFFFFFF", "U00110000"])
def test_without_libyaml_an_escape_of_no_character_is_refused(escape):
    [problem] = refusals(f'- a.example\n- "\\{escape}"\n')
    assert re.fullmatch(r"f\.yaml:2:\d+: invalid YAML: an escape of no character", problem)


def test_every_malformed_file_has_its_row():
    assert {path.stem for path in FIXTURES.iterdir()} == set(MALFORMED)


@pytest.mark.interface("2.3", "mandatory")
def test_an_entry_is_a_name_or_a_mapping_of_the_interface_fields():
    specs = load(
        "- example.com\n"
        "- {sign_domain: Mail.Example.COM., selector: s1, key_len: 2048,\n"
        "   start_date: 2027-07-01T00:00+09:00, default: 0, enable: false}\n"
    )
    assert specs == [
        DomainSpec("example.com"),
        DomainSpec("mail.example.com", "s1", 2048, "2027-07-01T00:00+09:00", 0, False),
    ]


@pytest.mark.interface("2.3", "selector")
@pytest.mark.parametrize(
    "word", ["on", "no", "20260101", "0123", "1e3", "2026-01", "0x1f", "null.s1"]
)
def test_selectors_are_sent_as_written(word):
    for written in (word, f"'{word}'"):
        # The old one may be any that the service chose, with underscores too.
        [spec] = load(f"- {{sign_domain: a.example, selector: {written}, replaces: _{word}}}")
        assert spec == DomainSpec("a.example", word, replaces=f"_{word}")


def test_an_entry_comes_before_the_defaults_of_its_file_and_these_before_the_profile():
    entries = "domains: [a.example, {sign_domain: b.example, default: 3}]\n"
    profile = {"key_len": 2048, "default": 1, "enable": False}
    one, other = load(f"{entries}defaults: {{key_len: 1024, default: 2}}\n", defaults=profile)
    assert one == DomainSpec("a.example", key_len=1024, default=2, enable=False)
    assert other == DomainSpec("b.example", key_len=1024, default=3, enable=False)


def test_reading_ends_after_1000_mistakes():
    problems = refusals("- a\n" * 1234)
    assert len(problems) == 1001
    assert problems[-1] == "f.yaml:1001:3: more problems follow, which are not shown"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("- {sign_domain: a.example, selector: %s}", "1:38: selector is"),
        ("- a.example\n- '%s'", "2:3: an entry is"),
        ("- sign_domain: a.example\n  start_date: >\n    %s\n", "2:15: start_date is"),
        ("- a.example\n- sign_domain: b.example\n  ? %s\n  : a\n", "3:5: a key is"),
    ],
)
def test_a_value_of_more_than_1024_characters_is_refused_in_its_place(text, place):
    with pytest.raises(InputError) as caught:
        load(text % ("a" * 1025))
    assert str(caught.value) == f"f.yaml:{place} longer than 1,024 characters"
    with pytest.raises(InputError) as caught:
        load(text % ("a" * 1023))
    assert "1,024" not in str(caught.value)


@pytest.mark.usefixtures("without_libyaml")
def test_without_libyaml_a_file_has_at_most_3_mib():
    with pytest.raises(UsageError, match=r"f\.yaml is larger than 3 MiB.* without libyaml"):
        load("#" * (3 << 20) + "\n")


@pytest.mark.interface("2.3", "selector-unique")
@pytest.mark.parametrize(
    ("selectors", "expected"),
    [(["s1", "s2", "s3"], []), (["s1", "s2", "S2"], [(3, '"S2" is already on line 2')]),
     ([None, "s1", "s2"], [(line, "without a selector (line 1)") for line in (2, 3)]),
     (["s1", None, None], [(2, "a selector (line 1)"), (3, "is already on line 2")])],
)  # fmt: skip
def test_all_entries_of_a_domain_are_compared(selectors, expected):
    named = "- {{sign_domain: Bücher.example, selector: {}}}\n".format
    entries = [named(name) if name else "- xn--bcher-kva.example.\n" for name in selectors]
    problems = refusals("".join(entries))
    for problem, (line, words) in zip(problems, expected, strict=True):
        assert problem.startswith(f'f.yaml:{line}:3: "xn--bcher-kva.example" ')
        assert words in problem


def test_a_selector_that_is_not_chosen_yet_counts_as_one_octet_of_253():
    fits, long = ".".join(["a" * 60] * 3 + ["b" * 57]), ".".join(["a" * 60] * 3 + ["b" * 58])
    assert load(f"- {fits}\n- {{sign_domain: {fits[2:]}, selector: abc}}\n")
    problems = refusals(f"- {long}\n- {{sign_domain: {long[2:]}, selector: abc}}\n")
    assert ["254 octets" in problem for problem in problems] == [True, True]


@pytest.mark.interface("2.3", "start_date")
@pytest.mark.parametrize(
    ("text", "expected"),
    [("2027-07-01T00:00+09:00", "2027-07-01T00:00+09:00"),
     ("2027-07-01T00:00:00+09:00", "2027-07-01T00:00+09:00"),
     ("2027-07-01T00:00Z", "2027-07-01T00:00+00:00"),
     ("2027-07-01T23:59-03:30", "2027-07-01T23:59-03:30"),
     ("2028-02-29T00:00-00:00", "2028-02-29T00:00+00:00"),
     ("0001-01-01T09:00+09:00", "0001-01-01T09:00+09:00")],
)  # fmt: skip
def test_start_dates_are_normalized_plain_or_quoted(text, expected):
    for word in (text, f"'{text}'"):
        (spec,) = load(f"- {{sign_domain: example.com, start_date: {word}}}")
        assert spec.start_date == expected


@pytest.mark.parametrize(
    ("domains", "expected"),
    [(["a.example"], 'in --domain: "a.example" is already on line 1 of 0.yaml'),
     (["b.example", "B.example."], "in --domain: b.example is named twice"),
     (["x"], 'in --domain: "x" is a single label'), ([""], "in --domain: ")],
)  # fmt: skip
def test_wrong_domains_are_refused(tmp_path, monkeypatch, domains, expected):
    monkeypatch.chdir(tmp_path)
    Path("0.yaml").write_text("- a.example")
    with pytest.raises(UsageError) as caught:
        read_specs("0.yaml", domains=domains)
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize(
    ("file", "name", "what"),
    [("saved-lines", "list.txt", "is output of dkimctl"),
     ("zone-file", "list.txt", "is a zone file"), ("html", "list.txt", "is an HTML"),
     ("plain-list-utf-16", "list.txt", "is in UTF-16"), ("spreadsheet", "list.txt", "is binary"),
     ("config", "list.txt", "is a config file"),
     ("saved-result", "list.csv", "is output of dkimctl")],
)  # fmt: skip
def test_another_file_is_called_what_it_is(file, name, what):
    with pytest.raises(InputError) as caught:
        load_specs((FIXTURES / f"{file}.yaml").read_bytes(), name)
    [problem] = caught.value.problems
    assert str(problem).startswith(f"{name}:1:1: the file {what}")
    assert problem.hint


def test_a_spec_file_with_sections_of_a_config_file_keeps_its_problems():
    with pytest.raises(InputError) as caught:
        load_specs(b"domains:\n  - a_b.example\nprofiles: {}\n", "f.yaml")
    places = [(problem.line, problem.column) for problem in caught.value.problems]
    assert places == [(2, 5), (3, 1)]


A, B = "a.example", "b.example"


@pytest.mark.parametrize("name", ["<stdin>", "f.txt", "f.csv", "f.yaml"])
@pytest.mark.parametrize(
    "text",
    ["a.example\nb.example\n", "A.example.\rb.example",
     "\ufeff# ours\r\n\r\n  a.example \t# main\r\n\tb.example\r\n",
     "Domain Name\na.example\nb.example", '"sep=;"\nNr;DOMAIN\n1;a.example\n2;b.example\n',
     "[a.example, b.example]" , "- a.example\n- b.example\n"],
)  # fmt: skip
def test_what_a_file_has_decides_how_it_is_read(text, name):
    if text[0] == "[" and name == "f.csv":
        return  # CSV, if its name says so
    assert [spec.sign_domain for spec in load_specs(text.encode(), name)] == [A, B]


def test_a_plain_list_has_the_defaults_of_domains_that_are_only_named():
    for text in (b"a.example\n", b"Nr;Domain\n1;a.example\n"):
        [spec] = load_specs(text, "f", defaults={"key_len": 1024})
        assert (spec.key_len, spec.implied) == (1024, ("start_date",))
        assert spec.start_date
    [spec] = load_specs(b"selector,Domain\n,a.example\n", "f")
    assert spec == DomainSpec(A)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a.example\n b c.example # x\n*.example\nhttps://me:pw@b.example/x\nx#y\nA.example.\n",
      """2:2: "b c.example" is not|3:1: "*.example" is a w|4:1: "https://b.example" is a URL|\
5:1: "x#y" contains|6:1: "a.example" is already on line 1"""),
     ("a.example\n" + "😀" * 300_000, '2:1: "' + "😀" * 60 + '…" is longer'),
     ("a.example\n" + "\n" * 1_048_576, "1048577:1: a row of more than 1,048,576 characters, or"),
     # A list that is meant as YAML stays YAML.
     ("a.example\n- b.example\n", "1:1: a spec file must be a list"),
     ("a.example:\n  key_len: 2048\n", '1:1: a spec file has no key "a.example"|1:1: a spec'),
     (f"{'e' * 20}.{'J' * 64}.{'x' * 20}\n", "1:1: a spec file must be a list")],
)  # fmt: skip
def test_what_is_wrong_in_a_list_has_its_place(text, expected):
    with pytest.raises(InputError) as caught:
        load_specs(text.encode(), "f.txt")
    for problem, words in zip(caught.value.problems, expected.split("|"), strict=True):
        assert str(problem).startswith(f"f.txt:{words}"), problem
        assert problem.hint


def load_csv(text: str | bytes, **options) -> list[DomainSpec]:
    data = text if isinstance(text, bytes) else text.encode()
    return load_specs(data, "f.csv", **options)


def csv_refusals(text: str | bytes) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_csv(text)
    assert all(problem.hint for problem in caught.value.problems)
    return [str(problem).removeprefix("f.csv:") for problem in caught.value.problems]


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
    assert load_csv(text) == [DomainSpec(A, "s1"), DomainSpec(B, "s2")]


def test_booleans_may_be_as_spreadsheets_write_them_and_selectors_stay():
    words = ["true", "TRUE", "false", "FALSE"]
    text = "".join(f"a.{at}.example,{word},,{word}\n" for at, word in enumerate(words))
    specs = load_csv(f"sign_domain,enable,key_len,selector\n{text}", defaults={"key_len": 2048})
    assert [spec.selector for spec in specs] == words
    assert [spec.enable for spec in specs] == [True, True, False, False]
    assert {spec.key_len for spec in specs} == {2048}
    assert csv_refusals(f"sign_domain,enable\n{A},Yes")[0].startswith('2:11: enable: "Yes" is not')


@pytest.mark.parametrize(
    "header",
    ["Domain,Selector,Bits", "Signing Domain;selector;key-length", "DOMAIN\tSELECTOR\tKey Len",
     "sep=;\nsign_domain;selector, or so;key_len", '"sep=;"\r\nsign_domain;x;bits'],
)  # fmt: skip
def test_headings_may_be_as_people_write_them(header):
    separator = next(char for char in "\t;," if char in header)
    [spec] = load_csv(f"{header}\n{separator.join((A, 's1', '2048'))}\n")
    assert (spec.sign_domain, spec.key_len) == (A, 2048)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", "1:1: the file is empty"), ("selector\ns1\n", "1:1: the column sign_domain is missing"),
     ("a.example,s1\nb.example,s1\n", "1:1: the column sign_domain is missing"),
     ("sign_domain,selector, sign_domain\n", '1:22: the column "sign_domain" is already column 1'),
     ("sign_domain\na_b.example\n", '2:1: sign_domain: "a_b.example" contains'),
     ("sign_domain,key_len\na.example\n", "2:1: the row has 1 cell, and the header 2"),
     ("sign_domain\na.example,s1\n", "2:11: the row has 2 cells, and the header 1"),
     ("sign_domain,selector\n,s1\n", "2:1: an entry needs a sign_domain"),
     ('sign_domain,message,key_len\na.example,"x\n""y\n",512\n"\nb",,\n',
      '4:3: key_len: "512" is not 1024 or 2048\n5:1: sign_domain: "\\x0ab" is not one'),
     ("sign_domain,default\na.example,-1\n", '2:11: default: "-1" is not a decimal number'),
     ("sign_domain\n=A1\n", '2:1: sign_domain: "=A1" contains "="'),
     ("sign_domain\na.example\na.example\n", '3:1: "a.example" is already on line 2'),
     ("sign_domain,selector\na.example,s\na.example,\n",
      '3:1: "a.example" has entries with and without a selector (line 2)'),
     ("sign_domain,selector,replaces\na.example,,s1\n", "2:1: an entry with replaces: needs a"),
     ("sign_domain,a\0b\n", "1:14: the character U+0000 is not allowed"),
     (b"sign_domain\nb\xfccher.example\n", "2:2: byte 0xfc is not UTF-8"),
     ('sign_domain\n"a.example\nb.example\n', "2:1: a cell in quotes does not end"),
     ('sign_domain,type\na.example,"x"y\n', "2:11: a cell in quotes does not end"),
     ("sign_domain\na.example\n" + "x" * 1025,
      '3:1: sign_domain: "' + "x" * 60 + '…" is longer than 253 octets'),
     ('sign_domain,value\na.example,"' + "x" * 131_073 + '"\n',
      "2:11: a cell in quotes does not end as it must, or is longer than 131,072"),
     ("sign_domain\n" + "," * 1_048_577, "2:1: a row of more than 1,048,576 characters")],
)  # fmt: skip
def test_every_mistake_has_its_place(text, expected):
    for problem, words in zip(csv_refusals(text), expected.split("\n"), strict=True):
        assert problem.startswith(words)


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
        load_csv(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100 << 20
    assert time.process_time() - start < 20
