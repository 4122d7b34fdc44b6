"""Spec files: what is written is what is registered, and every mistake is named at its place."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dkimctl.errors import InputError, UsageError
from dkimctl.models.registration import DomainSpec
from dkimctl.specs.advice import warnings
from dkimctl.specs.fields import ENTRY, parse_start_date
from dkimctl.specs.loading import load_specs, read_specs
from dkimctl.specs.names import key_name_length, parse_domain, parse_selector
from dkimctl.specs.usual import take_usual

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "specs"

# Each malformed file, with the line and column of every problem in it.
MALFORMED = {
    "empty": [(1, 1)],
    "comments-only": [(1, 1)],
    "null-document": [(1, 1)],
    "not-a-list": [(1, 1)],
    "binary": [(2, 3)],
    "latin-1": [(2, 4)],
    "utf-16": [(1, 1)],
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
    "directive": [(1, 1)],
    "two-documents": [(2, 1)],
    "complex-key": [(1, 5)],
    "repeated-key": [(3, 3)],
    "repeated-top-key": [(2, 1)],
    "unknown-key": [(2, 3)],
    "unknown-top-key": [(1, 1), (1, 1)],
    "unknown-default": [(2, 3)],
    "nested-too-deep": [(2, 3), (2, 10)],
    "list-as-value": [(1, 16)],
    "mapping-as-value": [(2, 13)],
    "list-as-entry": [(1, 3)],
    "domains-not-a-list": [(1, 10)],
    "defaults-not-a-mapping": [(2, 11)],
    "no-sign-domain": [(2, 3)],
    "null-entry": [(2, 2)],
    "null-values": [(2, 13), (3, 11), (4, 15), (5, 12), (6, 11)],
    "no-domains": [(1, 1)],
    "key-len": [(2, 12), (4, 12), (6, 12), (8, 12)],
    "default": [(2, 12), (4, 12), (6, 12), (8, 12), (10, 12)],
    "enable": [(2, 11), (4, 11), (6, 11)],
    "start-date": [(2, 15), (4, 15), (6, 15), (8, 15), (10, 15), (12, 15), (14, 15)],
    "not-domains": [
        (1, 3),
        (2, 3),
        (3, 3),
        (4, 3),
        (5, 3),
        (6, 3),
        (7, 3),
        (8, 3),
        (9, 3),
        (10, 3),
        (11, 3),
        (12, 3),
        (13, 3),
        (14, 3),
        (15, 3),
        (16, 3),
    ],
    "not-selectors": [(line, 13) for line in range(2, 18, 2)],
    "name-too-long": [(1, 3), (2, 3)],
    "repeated-pair": [(2, 3)],
    "repeated-domain": [(3, 3)],
    "with-and-without-selector": [(2, 3), (4, 3)],
    "json": [(2, 44)],
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
def test_every_mistake_of_a_malformed_file_is_placed(name):
    path = FIXTURES / f"{name}.yaml"
    with pytest.raises(InputError) as caught:
        read_specs(str(path))
    found = caught.value.problems
    assert [(problem.line, problem.column) for problem in found] == MALFORMED[name]
    assert all(str(problem).startswith(f"{path}:") and problem.hint for problem in found)


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


@pytest.mark.parametrize(
    "text", ["[]", "domains: []", '{"domains": []}', "domains: []\ndefaults: {}"]
)
def test_an_explicit_empty_list_is_nothing_to_do(text):
    assert load(text) == []


@pytest.mark.interface("2.3", "selector")
@pytest.mark.parametrize(
    "word", ["on", "no", "20260101", "0123", "1e3", "2026-01", "0x1f", "null.s1"]
)
def test_a_selector_is_sent_as_it_is_written(word):
    assert load(f"- {{sign_domain: example.com, selector: {word}}}")[0].selector == word
    assert load(f"- {{sign_domain: example.com, selector: '{word}'}}")[0].selector == word


@pytest.mark.parametrize("word", ["12:30", "2026_01", "'~'", "1.", "''", "a b"])
def test_a_selector_that_is_no_dns_label_is_refused(word):
    (problem,) = refusals(f"- {{sign_domain: example.com, selector: {word}}}")
    assert problem.startswith("f.yaml:1:40: selector: ")


def test_json_is_a_spec_file():
    entry = {"sign_domain": "example.com", "selector": "s.1", "key_len": 2048}
    text = json.dumps({"defaults": {"enable": True}, "domains": [entry]}, indent="\t")
    assert load(text) == [DomainSpec("example.com", "s.1", 2048, enable=True)]


def test_entry_stands_above_file_defaults_and_these_above_the_profile():
    specs = load(
        "domains:\n- a.example\n- {sign_domain: b.example, enable: true, key_len: 1024}\n"
        "defaults: {key_len: 2048, enable: false}\n",
        defaults={"key_len": 1024, "enable": False, "default": 1},
    )
    assert specs == [
        DomainSpec("a.example", None, 2048, None, 1, False),
        DomainSpec("b.example", None, 1024, None, 1, True),
    ]


def test_what_no_one_states_is_not_sent():
    assert load("- example.com") == [DomainSpec("example.com", None, None, None, None, None)]


def test_a_file_with_a_thousand_mistakes_reports_all_of_them():
    text = "".join(f"- {{sign_domain: d{i}.example, key_len: 512}}\n" for i in range(1000))
    lines = [int(problem.split(":")[1]) for problem in refusals(text)]
    assert lines == list(range(1, 1001))


def test_problems_come_in_the_order_of_the_file():
    found = refusals("- {selector: s_1}\n- {sign_domain: a_b.example, enable: yes}\n")
    places = [tuple(map(int, problem.split(":")[1:3])) for problem in found]
    assert places == [(1, 3), (1, 14), (2, 17), (2, 38)]


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
            '"xn--bcher-kva.example" stands with a selector and without one (line 1)',
        ),
    ],
)
def test_entries_that_collide_name_both_lines(text, expected):
    assert refusals(text) == [f"f.yaml:2:3: {expected}"]


def test_a_repeated_domain_is_found_though_its_entry_has_another_mistake():
    found = refusals("- {sign_domain: a.example, key_len: 1}\n- a.example\n")
    assert [problem.split(":")[1] for problem in found] == ["1", "2"]


@pytest.mark.interface("2.3", "sign_domain")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Example.COM.", "example.com"),
        ("Bücher.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("straße.example", "xn--strae-oqa.example"),
        ("例え。テスト。", "xn--r8jz45g.xn--zckzah"),
        ("r3---sn.example", "r3---sn.example"),
        ("1.example", "1.example"),
    ],
)
def test_a_signing_domain_becomes_a_labels(text, expected):
    assert parse_domain(text) == expected


@pytest.mark.interface("2.3", "sign_domain")
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("192.0.2.1", "is an IP address"),
        ("2001:db8::1", "is an IP address"),
        ("[2001:db8::1]", "is an IP address"),
        ("https://example.com", "is a URL or a path"),
        ("a@example.com", "is an e-mail address"),
        ("*.example.com", "is a wildcard"),
        ("localhost", "is a single label"),
        ("a..example", "has an empty label"),
        (".example", "has an empty label"),
        ("bü..example", "has an empty label"),
        ("a" * 64 + ".example", "has a label of 64 octets"),
        ("ü" * 60 + ".example", "is no internationalised domain name"),
        ("a." * 124 + "example", "is longer than 253 octets"),
        ("_dmarc.example", "holds an underscore"),
        ("a b.example", "holds a space"),
        ("a.example\n", "holds a space or line break"),
        ("-a.example", "has a label with a hyphen at its end"),
        ("a!.example", 'holds "!"'),
        ("1.2.3", "ends in a number"),
        ("☃.example", "is no internationalised domain name"),
        ("xn--a.example", "is no internationalised domain name"),
        ("a\x1b.example", r'"a\x1b.example" holds'),
        ("", "has an empty label"),
    ],
)
def test_what_is_no_signing_domain_is_told_what_it_is(text, what):
    with pytest.raises(UsageError) as caught:
        parse_domain(text)
    assert what in caught.value.message
    assert caught.value.hint


labels = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True).filter(
    lambda label: not label.startswith("xn--")
)


@given(st.lists(labels, min_size=2, max_size=5))
def test_any_hostname_is_a_signing_domain_as_it_is(parts):
    name = ".".join(parts)
    assert parse_domain(name) == parse_domain(name.upper() + ".") == name


@given(st.text())
@example("\ud800.example")
@example("ä" * 300)
def test_any_text_is_a_name_in_ascii_or_refused(text):
    try:
        name = parse_domain(text)
    except UsageError:
        return
    assert name.isascii()
    assert parse_domain(name) == name


@pytest.mark.parametrize("text", ["s1", "S1", "20260101", "s1.eu", "a-b", "a" * 63])
def test_a_selector_is_labels_joined_by_dots(text):
    assert parse_selector(text) == text


@pytest.mark.interface("2.3", "selector")
@pytest.mark.parametrize(
    "text", ["", ".", "s1.", "s_1", "-s", "s1\n", "sé", "a" * 64, "s1._domainkey", "\u212a"]
)
def test_other_selectors_are_refused(text):
    with pytest.raises(UsageError):
        parse_selector(text)


def test_the_bound_of_253_octets_counts_an_omitted_selector_as_one():
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
def test_a_start_date_is_normalised_in_any_style(text, expected, quote):
    (spec,) = load(f"- {{sign_domain: example.com, start_date: {quote}{text}{quote}}}")
    assert spec.start_date == expected


@pytest.mark.interface("2.3", "start_date")
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("2026-12-01", "write 2026-12-01T00:00+09:00"),
        ("2026-12-01T09:30", "write 2026-12-01T09:30+09:00"),
        ("2026-12-01 09:30:00+09:00", "write 2026-12-01T09:30+09:00"),
        ("2026-12-01T09:30+0900", "write 2026-12-01T09:30+09:00"),
        ("2026-12-01T09:30:01Z", "write 2026-12-01T09:30+09:00"),
        ("tomorrow", "write 2026-12-01T00:00+09:00"),
        ("\uff12026-12-01T09:30Z", "write 2026-12-01T00:00+09:00"),
        ("2026-02-29T00:00Z", "correct the date"),
        ("2026-12-01T00:00+24:00", "correct the date"),
        ("0000-01-01T00:00Z", "correct the date"),
        ("0001-01-01T00:00+09:00", "correct the date"),
        ("9999-12-31T23:59-09:00", "correct the date"),
        ("2026-12-01T24:00Z", "write 2026-12-01T"),
    ],
)
def test_another_start_date_is_refused_with_what_to_write(text, hint):
    with pytest.raises(UsageError) as caught:
        parse_start_date(text)
    assert caught.value.hint.startswith(hint)


offsets = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1900, 1, 1), datetime(9000, 1, 1), timezones=offsets)
fields = st.fixed_dictionaries(
    {"sign_domain": st.lists(labels, min_size=2, max_size=3).map(".".join)},
    optional={
        "selector": st.from_regex(r"[A-Za-z0-9]{1,20}", fullmatch=True),
        "key_len": st.sampled_from([1024, 2048]),
        "start_date": moments.map(lambda moment: moment.isoformat(timespec="minutes")),
        "default": st.integers(0, 999_999_999),
        "enable": st.booleans(),
    },
)


@given(st.lists(fields, unique_by=lambda entry: entry["sign_domain"]))
def test_specs_that_pyyaml_writes_are_loaded_back(entries):
    quoted = yaml.safe_dump(entries, default_flow_style=False)
    assert load(quoted) == [DomainSpec(**entry) for entry in entries]


usual_words = st.sampled_from(
    [
        *["a.example", "b.example", "B.example.", "s1", "S1", "2048", "1024", "0", "true", "false"],
        *["2027-07-01T00:00Z", "2027-07-01T00:00+09:00", "null", "Null", "a:b", "a:", "a-", "1_0"],
        *["~", "", "#a", "*a", "a b", "a #b", "é.example", f"{'x' * 64}.example", f"{'a.' * 130}a"],
    ]
)
values = st.tuples(usual_words, st.sampled_from(["", "", "", "'", '"'])).map(
    lambda found: f"{found[1]}{found[0]}{found[1]}"
)
keys = st.sampled_from([*ENTRY, "domains"])
mappings = st.tuples(values, st.dictionaries(keys, values, max_size=3)).map(
    lambda found: [f"sign_domain: {found[0]}", *(f"{k}: {v}" for k, v in found[1].items())]
)
usual_entries = st.one_of(
    values,
    mappings.map(lambda pairs: f"{{{', '.join(pairs)}}}"),
    mappings.map("\n  ".join),
    mappings.map("\n   ".join),
)
usual_lists = st.tuples(
    st.lists(usual_entries.map(lambda entry: f"- {entry}\n"), max_size=4),
    st.sampled_from(["", "\n", "# note: a\n", "  # note\n", " \n"]),
).map(lambda found: found[1].join(found[0]))
heads = [
    *["", "", "---\n", "# first\n", "domains: # all\n", "a\ndomains:\n", "domains: []\ndomains:\n"],
    *["defaults: {key_len: 1024}\ndomains:\n", "defaults:\n  enable: true\n\ndomains:\n"],
    *["defaults: |\ndomains:\n", 'defaults: "\ndomains:\n', "--- |\ndomains:\n", "{\ndomains:\n"],
]


@given(
    st.sampled_from(heads),
    usual_lists,
    st.sampled_from(["", "  "]),
    st.sampled_from(["\n", "\r\n"]),
)
@settings(max_examples=400)
def test_the_usual_forms_mean_what_the_parser_says(head, entries, indent, newline):
    indented = "".join(f"{indent}{line}" for line in entries.splitlines(keepends=True))
    text = (head + indented).replace("\n", newline)
    if take_usual(text)[1]:
        # The mark that ends a document changes nothing, but with it all is for the parser.
        assert loaded_or_refused(text) == loaded_or_refused(f"{text}...{newline}")


def test_millions_of_blank_lines_are_passed_quickly():
    begun = time.process_time()
    assert take_usual("\n" * 15_000_000)[1] == []
    assert (
        time.process_time() - begun < 8
    )  # a tenth of that, unless the pattern goes back over them


def loaded_or_refused(text: str) -> list[DomainSpec] | list[tuple[int, int]]:
    try:
        return load(text)
    except InputError as error:
        return [(problem.line, problem.column) for problem in error.problems]


@pytest.mark.parametrize(
    "text",
    [
        "- a.example\n- b.example",
        "---\n- a.example\n\n# the next\n- {sign_domain: b.example, selector: s1}\n",
        "  - sign_domain: a.example\n    selector: 's1'\n  - b.example\n",
        "defaults:\n  key_len: 1024\n\ndomains:\n- a.example\n# end\n",
        "- sign_domain: a.example\r\n  start_date: 2027-07-01T00:00+09:00\r\n",
    ],
)
def test_the_usual_forms_are_read_at_once(text):
    left, entries = take_usual(text)
    assert entries
    assert "example" not in left


@pytest.mark.parametrize(
    "entry",
    [
        "{sign_domain: a.example, selector: null}",
        "{sign_domain: a.example, selector: s1, selector: s2}",
        "{sign_domain: a.example, key_len: '2048'}",
        "{sign_domain: a.example, enable: yes}",
        "{selector: s1}",
        "{domain: a.example}",
        "a.example # the first",
        "a.example\n  b",
        "&a a.example",
        "'a''.example'",
    ],
)
def test_what_is_not_usual_is_left_to_the_parser(entry):
    text = f"- {entry}\n- z.example\n"
    assert take_usual(text) == (text, [])


words = ["sign_domain", "selector", "key_len", "defaults", "domains", "a.example", "~", "2048"]
marks = ["- ", ": ", "  ", "&a ", "*a", "!!str ", "<<", "? ", "|\n", ">\n", "\r\n", *"[]{},#'\""]
lines = ["%YAML 1.1\n", "---\n", "...\n", "\n", "\t", "\\", "é", "😀", "@"]
pieces = st.sampled_from([*words, *marks, *lines])


def refused(data: bytes) -> list[str]:
    """The places and problems of what is refused; anything but InputError fails the test."""
    try:
        load_specs(data, "f.yaml")
    except InputError as error:
        return [str(problem) for problem in error.problems]
    return []


@given(st.lists(pieces, max_size=30).map("".join))
def test_any_mixture_of_yaml_is_loaded_or_refused_with_places(text):
    assert all(re.match(r"f\.yaml:[1-9][0-9]*:[1-9]", line) for line in refused(text.encode()))


@given(st.binary())
def test_any_bytes_are_loaded_or_refused_with_places(data):
    assert all(re.match(r"f\.yaml:[1-9][0-9]*:[1-9]", line) for line in refused(data))


@pytest.mark.interface("2.3", "key_len-default", "start_date-default")
def test_short_keys_and_signing_at_once_are_doubted_in_one_line_each():
    specs = load(
        "- a.example\n- {sign_domain: b.example, key_len: 1024, enable: false}\n"
        "- {sign_domain: c.example, start_date: 2027-07-01T00:00Z}\n- d.example\n"
        "- {sign_domain: e.example, key_len: 2048, enable: true}\n"
        "- {sign_domain: f.example, key_len: 2048, start_date: 2026-11-20T00:00Z}\n"
    )
    short, at_once = warnings(specs, NOW)
    assert short == (
        "1024-bit keys for 4 domains (a.example, b.example, c.example, ...): "
        "write key_len: 2048 (RFC 8301)"
    )
    assert "4 domains (a.example, d.example, e.example, ...)" in at_once


def test_a_start_that_dns_can_hardly_make_is_doubted():
    starts = [NOW + timedelta(minutes=minutes) for minutes in (-1, 59, 61)]
    specs = [
        DomainSpec(f"d{number}.example", key_len=2048, start_date=start.isoformat())
        for number, start in enumerate(starts)
    ]
    at_once, soon = warnings(specs, NOW)
    assert "1 domain (d0.example)" in at_once
    assert "within the hour for 1 domain (d1.example)" in soon
    assert "check-dns" in soon


def test_specs_beyond_doubt_are_not_warned_of():
    assert warnings(load("- a.example", defaults={"key_len": 2048, "enable": False}), NOW) == []


def test_the_example_file_shows_the_forms_and_gives_no_warning():
    specs = read_specs(str(ROOT / "domains.example.yaml"))
    assert [spec.sign_domain for spec in specs] == [
        "example.com",
        "mail.example.com",
        "news.example.com",
    ]
    assert warnings(specs, NOW) == []
