"""Spec files: what is loaded, and that every mistake is reported with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from dkimctl.errors import InputError, UsageError
from dkimctl.models import DomainSpec
from dkimctl.names import key_name_length
from dkimctl.specs.spec_file import read_specs
from spec_files import load_specs

ROOT = Path(__file__).parents[3]


FIXTURES = ROOT / "tests" / "fixtures" / "specs"


# Each malformed file, with the line and column of every problem in it.
AT_THE_START = (
    "empty", "comments-only", "null-document", "not-a-list", "utf-16", "directive", "no-domains",
    "csv", "csv-semicolons", "csv-tabs", "csv-without-header", "csv-one-column", "plain-list",
    "plain-list-with-mark", "plain-list-utf-16", "saved-result", "saved-lines", "zone-file",
    "html", "spreadsheet", "config", "email-addresses", "urls",
)  # fmt: skip
MALFORMED = {name: [(1, 1)] for name in AT_THE_START} | {
    "binary": [(2, 3)],
    "latin-1": [(2, 4)],
    "utf-16-without-mark": [(1, 2)],
    "bad-byte-after-mark": [(1, 3)],
    "escape-character": [(1, 17)],
    "unclosed-bracket": [(4, 1)],
    "tab-indentation": [(2, 1)],
    "colon-in-text": [(1, 27)],
    "unclosed-quote": [(2, 1)],
    "anchor-and-alias": [(1, 16), (2, 16)],
    "billion-laughs": [(1, 1), (1, 4), (2, 1), (2, 4), (3, 10)],
    "tag": [(1, 3), (1, 3), (2, 16)],
    "merge-key": [(2, 3)],
    "two-documents": [(2, 1)],
    "complex-key": [(1, 5)],
    "repeated-key": [(3, 3)],
    "repeated-top-key": [(2, 1)],
    "unknown-key": [(2, 3)],
    "unknown-top-key": [(1, 1), (1, 1)],
    "unknown-default": [(2, 3), (3, 3)],
    "nested-too-deep": [(2, 3), (2, 10)],
    "list-as-value": [(1, 16)],
    "mapping-as-value": [(2, 13)],
    "list-as-entry": [(1, 3)],
    "domains-not-a-list": [(1, 10)],
    "defaults-not-a-mapping": [(2, 11)],
    "no-sign-domain": [(2, 3)],
    "null-entry": [(2, 2)],
    "null-values": [(2, 13), (3, 11), (4, 15), (5, 12), (6, 11)],
    "key-len": [(2, 12), (4, 12), (6, 12), (8, 12)],
    "default": [(2, 12), (4, 12), (6, 12), (8, 12), (10, 12)],
    "enable": [(2, 11), (4, 11), (6, 11)],
    "start-date": [(2, 15), (4, 15), (6, 15), (8, 15), (10, 15), (12, 15), (14, 15)],
    "not-domains": [(line, 3) for line in range(1, 17)],
    "not-selectors": [(line, 13) for line in range(2, 18, 2)],
    "name-too-long": [(1, 3), (2, 3)],
    "repeated-pair": [(2, 3)],
    "repeated-domain": [(3, 3)],
    "with-and-without-selector": [(2, 3), (4, 3)],
    "replaces": [(1, 3), (2, 3), (5, 13), (8, 13), (11, 12)],
    "json": [(2, 44)],
    "domain-as-key": [(1, 3), (1, 3)],
    "uneven-indentation": [(2, 2)],
    "equals-sign": [(1, 3)],
    "wildcard": [(2, 3)],
    "wildcard-quoted": [(1, 3)],
    "no-space-after-colon": [(1, 3), (2, 3)],
    "typographic-quotes": [(1, 3)],
}


def load(text: str, **options) -> list[DomainSpec]:
    return load_specs(text.encode(), "f.yaml", **options)


def refusals(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(text)
    return [str(problem) for problem in caught.value.problems]


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
@pytest.mark.parametrize("name", MALFORMED)
def test_without_libyaml_every_malformed_file_is_refused(name):
    with pytest.raises(InputError) as caught:
        load_specs((FIXTURES / f"{name}.yaml").read_bytes(), "f.yaml")
    assert all(str(problem).startswith("f.yaml:") for problem in caught.value.problems)


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
    assert load(f"- {{sign_domain: example.com, selector: {word}}}")[0].selector == word
    assert load(f"- {{sign_domain: example.com, selector: '{word}'}}")[0].selector == word


@pytest.mark.parametrize("word", ["12:30", "2026_01", "'~'", "1.", "''", "a b"])
def test_selectors_that_are_not_dns_labels_are_refused(word):
    (problem,) = refusals(f"- {{sign_domain: example.com, selector: {word}}}")
    assert problem.startswith("f.yaml:1:40: selector: ")


@pytest.mark.parametrize("word", ["s1", "20260101", "a.b", "k_1", "_x", "on", "1e3"])
def test_replaced_selectors_may_be_any_that_the_service_chose(word):
    [spec] = load(f"- {{sign_domain: example.com, selector: s2, replaces: {word}}}")
    assert spec == DomainSpec("example.com", "s2", replaces=word)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("replaces: s1", "an entry with replaces: needs a selector of its own"),
        ("selector: S1, replaces: s1", 'the selector "S1" cannot replace itself'),
        ("selector: s2, replaces: a b", 'replaces: "a b"'),
    ],
)
def test_a_successor_needs_another_selector_than_the_old_key(entry, problem):
    [refusal] = refusals(f"- {{sign_domain: example.com, {entry}}}")
    assert problem in refusal


def test_entries_override_file_defaults_which_override_the_profile():
    specs = load(
        "domains:\n- a.example\n- {sign_domain: b.example, enable: true, key_len: 1024}\n"
        "defaults: {key_len: 2048, enable: false}\n",
        defaults={"key_len": 1024, "enable": False, "default": 1},
    )
    assert specs == [
        DomainSpec("a.example", None, 2048, None, 1, False),
        DomainSpec("b.example", None, 1024, None, 1, True),
    ]


def test_of_more_mistakes_the_number_is_reported():
    problems = refusals("- a\n" * 1234)
    assert len(problems) == 1001
    assert problems[-1] == "f.yaml:1001:3: 234 more problems from here on"
    *_, last = refusals("- a\n" * 100_000)
    assert last == "f.yaml:1001:3: at least 4,000 more problems from here on"


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
    ("text", "expected"),
    [
        ("- a.example\n- A.example.\n", '"a.example" is already on line 1'),
        (
            "- {sign_domain: a.example, selector: s}\n- {sign_domain: a.example, selector: S}\n",
            '"a.example" with selector "S" is already on line 1',
        ),
        (
            "- {sign_domain: bücher.example, selector: s}\n- xn--bcher-kva.example\n",
            '"xn--bcher-kva.example" has entries with and without a selector (line 1)',
        ),
    ],
)
def test_colliding_entries_name_both_lines(text, expected):
    assert refusals(text) == [f"f.yaml:2:3: {expected}"]


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        (["s1", "s2", "s3"], []),
        (["s1", "s2", "S1"], [(3, '"S1" is already on line 1')]),
        (["s1", "s2", "S2"], [(3, '"S2" is already on line 2')]),
        (["s1", "s2", None], [(3, "with and without a selector (line 1)")]),
        ([None, "s1", "s2"], [(line, "without a selector (line 1)") for line in (2, 3)]),
        (["s1", None, None], [(2, "a selector (line 1)"), (3, "is already on line 2")]),
    ],
)
def test_all_entries_of_a_domain_are_compared(selectors, expected):
    entries = [
        f"- {{sign_domain: a.example, selector: {selector}}}\n" if selector else "- a.example\n"
        for selector in selectors
    ]
    problems = refused("".join(entries).encode())
    assert len(problems) == len(expected)
    for problem, (line, words) in zip(problems, expected, strict=True):
        assert problem.startswith(f'f.yaml:{line}:3: "a.example" ')
        assert words in problem


def test_omitted_selector_counts_as_one_octet_of_253():
    assert key_name_length("a.example", None) == len("s._domainkey.a.example")
    fits = ".".join(["a" * 58] * 4) + ".ab"
    assert key_name_length(fits, None) == 251
    assert load(f"- {{sign_domain: {fits}, selector: abc}}")
    (problem,) = refusals(f"- {{sign_domain: {fits}, selector: abcd}}")
    assert "254 octets" in problem


@pytest.mark.interface("2.3", "start_date")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-07-01T00:00+09:00", "2027-07-01T00:00+09:00"),
        ("2027-07-01T00:00:00+09:00", "2027-07-01T00:00+09:00"),
        ("2027-07-01T00:00Z", "2027-07-01T00:00+00:00"),
        ("2027-07-01T23:59-03:30", "2027-07-01T23:59-03:30"),
        ("2028-02-29T00:00-00:00", "2028-02-29T00:00+00:00"),
        ("0001-01-01T09:00+09:00", "0001-01-01T09:00+09:00"),
    ],
)
@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_start_dates_are_normalized_in_any_style(text, expected, quote):
    (spec,) = load(f"- {{sign_domain: example.com, start_date: {quote}{text}{quote}}}")
    assert spec.start_date == expected


def refused(data: bytes) -> list[str]:
    """The places and problems of what is refused; anything but InputError fails the test."""
    try:
        load_specs(data, "f.yaml")
    except InputError as error:
        return [str(problem) for problem in error.problems]
    return []


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
            DomainSpec("a.example", key_len=1024),
            DomainSpec("b.example", key_len=2048, enable=True),
            DomainSpec("c.example", key_len=2048),
        ]

    @pytest.mark.slow
    def test_all_files_together_have_at_most_250_000_entries(self, read):
        rows = "".join(f"d{number}.a\n" for number in range(250_000))
        assert len(read(f"sign_domain\n{rows}")) == 250_000
        with pytest.raises(InputError) as caught:
            read("- a.example", f"sign_domain\n{rows}")
        assert str(caught.value) == "1.csv:250001:1: more than 250,000 entries"

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
            (["a.example"], 'in --domain: "a.example" is already on line 1 of 0.yaml'),
            (["b.example", "B.example."], "in --domain: b.example is named twice"),
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


@pytest.mark.parametrize(
    ("name", "what"),
    [("csv", "is a table (CSV)"), ("csv-semicolons", "is a table (CSV)"),
     ("csv-tabs", "is a table (CSV)"), ("csv-without-header", "is a table (CSV)"),
     ("csv-one-column", "is a table (CSV)"), ("plain-list", "is a plain list of domains"),
     ("plain-list-with-mark", "is a plain list of domains"),
     ("plain-list-utf-16", "is in UTF-16"), ("saved-result", "is output of dkimctl"),
     ("saved-lines", "is output of dkimctl"), ("zone-file", "is a zone file"),
     ("html", "is an HTML or XML document"), ("spreadsheet", "is binary"),
     ("config", "is a config file"), ("email-addresses", "is a list of email addresses"),
     ("urls", "is a list of URLs")],
)  # fmt: skip
def test_another_file_is_called_what_it_is(name, what):
    with pytest.raises(InputError) as caught:
        load_specs((FIXTURES / f"{name}.yaml").read_bytes(), "list.txt")
    [problem] = caught.value.problems
    assert str(problem).startswith(f"list.txt:1:1: the file {what}")
    assert problem.hint


def test_a_file_that_is_meant_as_a_spec_file_keeps_its_problems():
    for text in ("- a_b\n", "domains: x.example\n", "domains:\n  - a_b\nsign_domain: x\n"):
        assert "not a spec file" not in "".join(refusals(text))


def test_a_wildcard_without_quotes_is_called_so():
    [problem] = refusals((FIXTURES / "wildcard.yaml").read_text())
    assert "a wildcard (*) cannot be a signing domain; and without quotes" in problem
