"""Cases of records at and around the name of a key, in zones whose servers all agree."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from delegation import Zone
from dkimctl.dns.verdicts import Verdict
from zone_case import RECORD, Case, Mail

HOSTS = ("ns1.hosts.example", "ns2.hosts.example", "ns3.hosts.example")  # nsd, Knot DNS, BIND
PLAIN, FAR = "plain.example", "far.example"

PUBLISHED, MISSING, MISMATCH = Verdict.PUBLISHED, Verdict.MISSING, Verdict.MISMATCH
MALFORMED, DUPLICATE, REVOKED = Verdict.MALFORMED, Verdict.DUPLICATE, Verdict.REVOKED

_DNAME = "RFC 6672 3.1: the CNAME is for clients without DNAME; OpenDKIM fails on the DNAME by it"
_LONG_CHAIN = "RFC 1034 5.3.3: a resolver bounds its work; asked again, it may go on from there"
_MAX_ALIASES = 11  # that Unbound follows
_TARGET = "key.{domain}. TXT {value}\n"


def _alias(target: str) -> str:
    return "{name}. CNAME " + target + "\n"


STRINGS = (
    "{value}",
    "{value.octets}",
    "{value.halves}",
    "{value.empty_between}",
    "{value.escaped}",
)

RECORDS = {
    "ttl-0": (PUBLISHED, "{name}. 0 TXT {value}\n"),
    "escaped-owner": (PUBLISHED, "\\115\\049._\\100OMAINKEY.{domain}. TXT {value}\n"),
    "beside-others": (PUBLISHED, RECORD + '{name}. HINFO "a" "b"\n*.{name}. TXT "y"\n'),
    "nothing": (MISSING, ""),
    "another-selector": (MISSING, "s2._domainkey.{domain}. TXT {value}\n"),
    "only-below": (MISSING, "a.{name}. TXT {value}\n"),
    "one-label": (MISSING, "s1\\._domainkey.{domain}. TXT {value}\n"),
    "type-spf": (MISSING, "{name}. SPF {value}\n"),
    "doubled-zone": (MALFORMED, "{name}.plain.example. TXT {value}\n"),
    "another-longer-key": (MISMATCH, "{name}. TXT {other}\n"),
    "revoked": (REVOKED, '{name}. TXT "v=DKIM1; p="\n'),
    "spf": (MALFORMED, '{name}. TXT "v=spf1 -all"\n'),
    # Names with wildcards next to the key's name, or instead of it (RFC 4592).
    "wild-txt": (MISSING, '*.{domain}. TXT "v=spf1 -all"\n'),
    "wild-key-deep": (PUBLISHED, "*._domainkey.{domain}. TXT {value}\n"),
    "wild-revoked": (MISSING, '*._domainkey.{domain}. TXT "v=DKIM1; p="\n'),
    "wild-overridden": (PUBLISHED, '*._domainkey.{domain}. TXT "v=DKIM1; p="\n' + RECORD),
    "wild-blocked": (MISSING, '*._domainkey.{domain}. TXT {value}\n{name}. HINFO "a" "b"\n'),
    "wild-alias-deep": (PUBLISHED, "*._domainkey.{domain}. CNAME deep.far.example.\n"),
    "wild-alias-astray": (MISSING, "*.{domain}. CNAME nothing.far.example.\n"),
    "wild-alias-beside": (PUBLISHED, "*._domainkey.{domain}. CNAME text.far.example.\n" + RECORD),
    "alias": (PUBLISHED, _alias("key.{domain}.") + _TARGET),
    "alias-to-odd-name": (
        PUBLISHED, _alias("a\\.b\\032c.{domain}.") + "a\\.b\\032c.{domain}. TXT {value}\n",
    ),
    "alias-far": (PUBLISHED, _alias("alias-far.far.example.")),
    "alias-to-wildcard-alias": (
        PUBLISHED, _alias("a.wild.{domain}.") + "*.wild.{domain}. CNAME key.{domain}.\n" + _TARGET,
    ),
    "alias-dangling": (MISSING, _alias("nothing.{domain}.")),
    "alias-to-no-zone": (MISSING, _alias("nothing.invalid-zone.example.")),
    "alias-to-root": (MISSING, _alias(".")),
    "alias-to-other-type": (MISSING, _alias("a.{domain}.") + "a.{domain}. A 192.0.2.1\n"),
    "alias-to-other-key": (MISMATCH, _alias("key.{domain}.") + "key.{domain}. TXT {other}\n"),
    "alias-to-text": (MALFORMED, _alias("text.far.example.")),
    "alias-to-itself": (MALFORMED, _alias("{name}.")),
    "alias-into-loop": (
        MALFORMED,
        _alias("a.{domain}.") + "a.{domain}. CNAME b.{domain}.\nb.{domain}. CNAME a.{domain}.\n",
    ),
    "alias-loop-far": (MALFORMED, _alias("alias-loop-far.far.example.")),
    "dname-dangling": (MISSING, "_domainkey.{domain}. DNAME keys.{domain}.\n"),
    "dname-loop": (MALFORMED, "_domainkey.{domain}. DNAME _domainkey.{domain}.\n"),
}  # fmt: skip

DNAMES = {
    "dname": "_domainkey.{domain}. DNAME keys.{domain}.\ns1.keys.{domain}. TXT {value}\n",
    "dname-far": "_domainkey.{domain}. DNAME dname-far.far.example.\n",
}

# What cases have in the other zone.
_FAR = {
    "wild-alias-deep": "deep.far.example. TXT {value}\n",
    "alias-far": "alias-far.far.example. TXT {value}\n",
    "alias-loop-far": "alias-loop-far.far.example. CNAME {name}.\n",
    "dname-far": "s1.dname-far.far.example. TXT {value}\n",
}

# OpenDKIM refuses several records; dkimpy takes the first (RFC 6376 section 3.6.2.2).
SEVERAL = {
    "two": RECORD + "{name}. TXT {other}\n",
    "with-spf": RECORD + '{name}. TXT "v=spf1 -all"\n',
    "with-revoked": RECORD + '{name}. TXT "v=DKIM1; p="\n',
    "two-alike": RECORD + "{name}. TXT {value.halves}\n",
    "alias-to-two": _alias("a.{domain}.") + "a.{domain}. TXT {value}\na.{domain}. TXT {other}\n",
}

_LONG = "a" * 63
NAMES = (
    Case("xn--bcher-kva.plain.example", PUBLISHED, spelled="bücher.plain.example"),
    Case("mixed.plain.example", PUBLISHED, spelled="MiXeD.Plain.EXAMPLE"),
    Case(f"{_LONG}.{_LONG}.{_LONG[:50]}.plain.example", PUBLISHED, selector=_LONG[:49]),
    Case("dotted.plain.example", PUBLISHED, selector="a.b.2026"),
    Case("another-key.plain.example", MISMATCH, "{name}. TXT {other}\n", key_len=2048),
    Case("plain.example", PUBLISHED),
    Case("plain.example", MISSING, "", selector="s2"),
)


def _chains() -> Iterator[Case]:
    """Chains of aliases."""
    for length in (2, _MAX_ALIASES, _MAX_ALIASES + 1):
        links = [f"a{number}.{{domain}}." for number in range(length)]
        near = _alias(links[0]) + "".join(
            f"{link} CNAME {target}\n" for link, target in itertools.pairwise(links)
        )
        case = Case(f"chain-{length}.{PLAIN}", PUBLISHED, near + links[-1] + " TXT {value}\n")
        if length > _MAX_ALIASES:
            case = case._replace(verdict=MALFORMED, mail=Mail.DEPENDS, because=_LONG_CHAIN)
        yield case


def _cases() -> Iterator[Case]:
    for number, strings in enumerate(STRINGS):
        records = "{name}. TXT " + strings + "\n"
        yield Case(f"strings-{number}.{PLAIN}", PUBLISHED, records, key_len=2048)
    several = {label: (DUPLICATE, records) for label, records in SEVERAL.items()}
    for label, (verdict, records) in (RECORDS | several).items():
        elsewhere = {FAR: _FAR[label]} if label in _FAR else {}
        yield Case(f"{label}.{PLAIN}", verdict, records, elsewhere)
    for label, records in DNAMES.items():
        elsewhere = {FAR: _FAR[label]} if label in _FAR else {}
        yield Case(
            f"{label}.{PLAIN}", PUBLISHED, records, elsewhere, mail=Mail.REFUSED, because=_DNAME
        )
    yield from NAMES
    yield from _chains()


CASES = list(_cases())
ZONES = [Zone(PLAIN, HOSTS), Zone(FAR, HOSTS, 'text.far.example. TXT "v=spf1 -all"\n')]
