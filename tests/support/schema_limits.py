"""What the loaders refuse, and a JSON Schema cannot: so the editor shows no error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dkimctl.errors import Problem
from dkimctl.strict_yaml.problems import MAX_LISTED


class Limit(NamedTuple):
    """`problem` is a pattern of what the loader says of files such as `example`."""

    reason: str
    problem: str
    example: str


_NUMBER = r'"(?:[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|0x\w+|0o\w+|[-+]?\.\w+)"'
_AS_WRITTEN = "an editor sees a number, not how it is written"

# Of any YAML.
_YAML = [
    Limit("for an editor, it is a value", r"YAML anchors \(&\)|a YAML alias", "{list: [&a {one}]}"),
    Limit("for an editor, it is a value", r"YAML tags \(!\)", "{list: [!!map {one}]}"),
    Limit("for an editor, it is no value", "YAML directives", "%YAML 1.2\n---\n{list: [{one}]}"),
    Limit(
        "an editor checks each document by itself",
        "a second YAML document",
        "{list: [{one}]}\n---\n{list: [{one}]}",
    ),
    Limit("for an editor, it is text", r"the character U\+\w+ is not", "{list: [{one}]} # \x85"),
    Limit(
        "no schema limits the length of a number",
        "is longer than 1,024 characters",
        "{list: [{one, number: 1" + "0" * 1024 + "}]}",
    ),
]


def _yaml(words: dict[str, str]) -> Iterable[Limit]:
    """Those of any YAML, with the words of a kind of file."""
    pattern = re.compile("|".join(words))
    for limit in _YAML:
        example = pattern.sub(lambda match: words[match[0]], limit.example)
        yield limit._replace(example=example)


_DEFAULTS = [
    Limit(
        "it needs a calendar",
        "is not a date in the calendar",
        "{start_date: 2027-02-30T00:00Z}",
    ),
    Limit(_AS_WRITTEN, rf"^key_len: {_NUMBER} is", "{key_len: 0x800}"),
    Limit(_AS_WRITTEN, rf"^default: {_NUMBER} is", "{default: 01}"),
    Limit(
        "an editor sees a boolean, not how it is written",
        '^enable: "(?:True|TRUE|False|FALSE)"',
        "{enable: True}",
    ),
]
SPECS = [
    *_yaml({"list": "domains", "one": "sign_domain: a.example", "number": "selector"}),
    Limit("there is nothing to check", "the file is empty", "# nothing\n"),
    Limit("it compares entries", "is already on line", "[a.example, {sign_domain: A.EXAMPLE.}]"),
    Limit(
        "it compares entries",
        "has entries with and without a selector",
        "[a.example, {sign_domain: a.example, selector: s1}]",
    ),
    Limit(
        "it adds the lengths of two fields",
        r"SELECTOR\._domainkey\.DOMAIN has 2\d\d octets",
        f"[{{sign_domain: {'a.' * 116}example, selector: s2027}}]",
    ),
    Limit(
        "it compares two fields",
        "cannot replace itself",
        "[{sign_domain: a.example, selector: s1, replaces: S1}]",
    ),
    Limit(
        "it needs the rules of IDNA",
        "is not a valid internationalized domain name",
        "[xn--a.example]",
    ),
    Limit(
        "it needs the rules of IDNA",
        r'^(?:an entry|sign_domain): "[^"]*(?:[^\0-\x7f]|\\u|\\x)',
        "[é..example]",
    ),
    Limit(
        _AS_WRITTEN,
        rf"^(?:selector|replaces): {_NUMBER}",
        "[{sign_domain: a.example, selector: .5}]",
    ),
    *(limit._replace(example=f"{{domains: [], defaults: {limit.example}}}") for limit in _DEFAULTS),
]
_PROFILE = "{profiles: {default: {%s}}}"
_TARGET = "{dns: [{provider: rfc2136, server: 192.0.2.1, %s}]}"
_PROVIDER = "{dns: [{provider: octodns, class: a.A, settings: {%s}}]}"
CONFIG = [
    *_yaml({"list": "dns", "one": "provider: rfc2136, server: 192.0.2.1", "number": "key_file"}),
    *(limit._replace(example=_PROFILE % f"defaults: {limit.example}") for limit in _DEFAULTS),
    Limit("for an editor, each key is text", "has no value$", "{profiles: {null: {}}}"),
    Limit(_AS_WRITTEN, "invalid profile name", "{default_profile: +1}"),
    Limit(
        _AS_WRITTEN,
        "^(?:batch_size|concurrency|ttl|limit): the value is not a number, or out of range",
        _PROFILE % "batch_size: 0x10",
    ),
    Limit(
        _AS_WRITTEN,
        "^(?:timeout|max_wait|recheck): invalid duration",
        _PROFILE % "timeout: 1e3",
    ),
    Limit(
        "it compares a number with its unit",
        "^(?:timeout|max_wait|recheck): invalid duration",
        _PROFILE % "timeout: 25h",
    ),
    Limit(
        "it compares a number with its unit",
        "^(?:max_age|lead|grace): invalid duration",
        "{rotation: {max_age: 3651d}}",
    ),
    Limit(
        "it compares a number with its unit",
        "^grace: shorter than 5 days",
        "{rotation: {grace: 4d}}",
    ),
    Limit(
        "it compares two fields",
        "lead is not shorter than max_age",
        "{rotation: {lead: 8d, max_age: 1w}}",
    ),
    Limit(
        "it needs the rules of host names and addresses",
        "the URL has an invalid",
        _PROFILE % "auth_url: 'https://a..b'",
    ),
    Limit(
        "it needs the rules of IDNA",
        r"http:// is allowed for loopback addresses only",
        _PROFILE % "auth_url: http://é.example",
    ),
    Limit(
        "so rare that its pattern would not pay",
        "a % without two hexadecimal digits",
        _PROFILE % "auth_url: https://a.example/%",
    ),
    Limit(
        "it needs the users of this machine",
        "unknown home directory in the path",
        _PROFILE % "ca_bundle: ~nobody-of-that-name/a",
    ),
    Limit(
        "it needs the rules of addresses",
        "^server: invalid DNS server",
        "{dns: [{provider: rfc2136, server: '192.0.2.1:0'}]}",
    ),
    Limit(
        "it compares entries",
        "^the zone .* is already in",
        "{dns: [%s, %s]}" % (("{provider: rfc2136, server: 192.0.2.1, zones: [a.example]}",) * 2),
    ),
    Limit(
        "it needs the rules of IDNA",
        "is not a valid internationalized domain name",
        _TARGET % "zones: ['xn--a.é']",
    ),
    Limit(
        "it needs the rules of IDNA",
        r'^zones: "[^"]*(?:[^\0-\x7f]|\\u|\\x)',
        _TARGET % "zones: [é..example]",
    ),
    Limit(_AS_WRITTEN, rf"^zones: {_NUMBER}", _TARGET % "zones: [5]"),
    Limit(
        "it needs the rules of shells",
        "^command: a quotation mark is not closed",
        """{notify: {command: "'"}}""",
    ),
    Limit("it needs the rules of shells", "names no program", """{notify: {command: "''"}}"""),
    Limit(
        "its pattern is for small letters",
        "secrets are not allowed in this file",
        _PROVIDER % "SECRET: x",
    ),
    Limit(
        "no schema limits how deep values are nested",
        "nested too deeply",
        _PROVIDER % f"a: {'[' * 9}{']' * 9}",
    ),
]


def are_beyond(limits: Sequence[Limit], problems: Sequence[Problem]) -> bool:
    """Whether a schema cannot see any of the problems; the last may only count the others."""
    return all(
        any(re.search(limit.problem, problem.message) for limit in limits)
        for problem in problems[:MAX_LISTED]
    )
