"""Cases of name servers that fail or disagree, of delegations, and of DNSSEC."""

from __future__ import annotations

from collections.abc import Iterator

from delegation import Host, Security, Zone
from dkimctl.dns.verdicts import Verdict
from zone_case import RECORD, Case, Mail
from zone_cases import HOSTS

PUBLISHED, MISSING = Verdict.PUBLISHED, Verdict.MISSING
NO_ANSWER, INCONSISTENT, BOGUS = Verdict.NO_ANSWER, Verdict.INCONSISTENT, Verdict.BOGUS

UPSTREAM = "upstream.hosts.example"
UPSTREAM_ADDRESS = "127.0.0.5"
NS1, NS2, NS3 = HOSTS
DEAD, OLD, V6 = "dead.hosts.example", "old.hosts.example", "v6.hosts.example"
TWIN = "twin.hosts.example"
NO_ADDRESS = "nothing.hosts.example"

_OTHER_SERVER = "RFC 1034 5.3.3: a resolver asks the next server, until it happens to ask the other"
_ALL_ACCEPTED = "RFC 6376 3.6.1: t=y is no reason to refuse; the servers disagree all the same"
_NEXT_SERVER = "RFC 1034 5.3.3: a resolver asks the next server; but nothing is known of this one"
_NOT_AUTHORITATIVE = "RFC 2181 5.4.1: not authoritative, so least trustworthy; Unbound takes it"

# By the behaviour of the only server of a zone (see odd_servers.py). Unbound asks without EDNS only
# after FORMERR or NOTIMP (RFC 6891 section 7).
ODD = {
    "silent": NO_ANSWER,
    "tcp-only": NO_ANSWER,
    "udp-only": PUBLISHED,
    "truncating": PUBLISHED,
    "truncating-udp-only": NO_ANSWER,
    "not-authoritative": NO_ANSWER,
    "refused": NO_ANSWER,
    "edns-formerr": PUBLISHED,
    "edns-silent": NO_ANSWER,
    "only-txt": PUBLISHED,
    "lossy": PUBLISHED,
}
_ODD_MAIL = {
    "not-authoritative": (Mail.ACCEPTED, _NOT_AUTHORITATIVE),
}


def odd_hosts() -> list[Host]:
    """A host for each of ODD, where the network starts nothing."""
    return [
        Host(f"{name}.hosts.example", (f"127.0.1.{number}",), program="")
        for number, name in enumerate(ODD, 1)
    ]


ODD_ZONES = [Zone(f"{name}.example", (f"{name}.hosts.example",)) for name in ODD]

HOSTS_OF_NETWORK = [
    Host(NS1, ("127.0.0.2",), "nsd"),
    Host(NS2, ("127.0.0.3",), "knotd", refused=("lame.example", "all-lame.example")),
    Host(NS3, ("127.0.0.4",), "named"),
    Host(UPSTREAM, (UPSTREAM_ADDRESS,), "nsd", also=tuple(zone.name for zone in ODD_ZONES)),
    Host(OLD, ("127.0.0.6",), also=("moved.example", "half-moved.example", "glue-old.example")),
    Host(V6, ("fd53::7",), "nsd"),
    Host(TWIN, ("127.0.0.2",), program=""),  # the address of another
    Host(DEAD, ("127.0.0.9",), program=""),
    Host("ns.glue-old.example", ("127.0.0.11",), "nsd"),
    Host("ns.glue-dead.example", ("127.0.0.12",), "nsd"),
    Host("ns.glue-missing.example", ("127.0.0.14",), "nsd"),
    *odd_hosts(),
]  # fmt: skip

_GLUE = {
    "glue-old.example": ("127.0.0.6",),
    "glue-dead.example": ("127.0.0.9",),
    "glue-missing.example": (),
}
# Each has cases below, at its own name or others.
ZONES = [
    *ODD_ZONES,
    Zone("split.example", (NS1, NS2, NS3)),
    Zone("below.example", (NS1,)),
    Zone("sub.below.example", (NS2, NS3)),
    Zone("_domainkey.sub.below.example", (NS1, NS3)),
    Zone("_domainkey.dead.below.example", (DEAD,)),
    Zone("_domainkey.undelegated.below.example", (NS2,), delegated_to=()),
    Zone("dead.example", (DEAD,)),
    Zone("half-dead.example", (NS1, DEAD)),
    Zone("lame.example", (NS1, NS2)),
    Zone("all-lame.example", (NS2,)),
    Zone("half-no-address.example", (NS1, NO_ADDRESS)),
    Zone("not-delegated.example", (NS1,), delegated_to=()),
    Zone("moved.example", (NS1,), delegated_to=(OLD,)),
    Zone("half-moved.example", (NS1,), delegated_to=(NS1, OLD)),
    Zone("delegated-to-dead.example", (NS1,), delegated_to=(DEAD,)),
    *(
        Zone(name, (f"ns.{name}",), glue={f"ns.{name}": addresses})
        for name, addresses in _GLUE.items()
    ),
    Zone("v6.example", (V6,)),
    Zone("twins.example", (NS1, TWIN)),
    Zone("secure.example", (NS1, NS2, NS3), security=Security.SECURE),
    Zone("insecure.secure.example", (NS1,)),
    Zone("expired.example", (NS1,), security=Security.EXPIRED),
    Zone("wrong-ds.example", (NS2,), security=Security.WRONG_DS),
]  # fmt: skip

_OTHER = "{name}. TXT {other}\n"
_TARGET = "key.{domain}. TXT {value}\n"
# One of three servers, or two, have something else.
_SPLIT = {
    "one-lacks-it": {NS3: ""},
    "one-has-another-key": {NS1: _OTHER},
    "one-has-an-alias": {NS2: "{name}. CNAME a.split.example.\n"},
}
_ALIAS = "{name}. CNAME key.{domain}.\n" + _TARGET
_SPLIT_CASES = [
    *(
        Case(
            f"{label}.split.example", INCONSISTENT, at=at, mail=Mail.DEPENDS, because=_OTHER_SERVER
        )
        for label, at in _SPLIT.items()
    ),
    Case(
        "one-has-flags.split.example", INCONSISTENT, at={NS1: '{name}. TXT {value} "; t=y"\n'},
        mail=Mail.ACCEPTED, because=_ALL_ACCEPTED,
    ),
    Case(
        "one-has-other-strings.split.example", PUBLISHED, at={NS3: "{name}. TXT {value.halves}\n"}
    ),
    Case("one-has-an-alias-to-it.split.example", PUBLISHED, RECORD + _TARGET, at={NS2: _ALIAS}),
]  # fmt: skip

_ZONE_CASES = {
    "sub.below.example": PUBLISHED,
    "dead.below.example": NO_ANSWER,
    "undelegated.below.example": MISSING,
    "dead.example": NO_ANSWER,
    "all-lame.example": NO_ANSWER,
    "not-delegated.example": MISSING,
    "unregistered.example": MISSING,
    "delegated-to-dead.example": NO_ANSWER,
    "glue-dead.example": NO_ANSWER,
    "glue-missing.example": NO_ANSWER,
    "v6.example": PUBLISHED,
    "twins.example": PUBLISHED,
    "secure.example": PUBLISHED,
    "insecure.secure.example": PUBLISHED,
    "expired.example": BOGUS,
    "wrong-ds.example": BOGUS,
}
# At the end of an alias.
_TARGETS = {
    "to-bogus.secure.example": (BOGUS, "key.expired.example"),
    "to-insecure.secure.example": (PUBLISHED, "key.below.example"),
    "to-dead.below.example": (NO_ANSWER, "key.dead.example"),
    "to-dead-zone.below.example": (NO_ANSWER, "dead.example"),
    "to-bogus-zone.below.example": (BOGUS, "wrong-ds.example"),
    "to-zone.below.example": (PUBLISHED, "secure.example"),
}


def _cases() -> Iterator[Case]:
    for name, verdict in ODD.items():
        mail, because = _ODD_MAIL.get(name, (None, ""))
        yield Case(f"{name}.example", verdict, mail=mail, because=because)
    yield from _SPLIT_CASES
    for domain, verdict in _ZONE_CASES.items():
        yield Case(domain, verdict)
    for domain, (verdict, target) in _TARGETS.items():
        zone = target.removeprefix("key.")
        alias = f"{{name}}. CNAME {target}.\n"
        yield Case(domain, verdict, alias, {zone: target + ". TXT {value}\n"})
    yield Case("wild.secure.example", PUBLISHED, "*.wild.secure.example. TXT {value}\n")
    yield Case("missing.secure.example", MISSING, "")
    yield Case("missing.expired.example", MISSING, "")
    for domain in ("half-dead.example", "lame.example"):
        yield Case(domain, NO_ANSWER, mail=Mail.ACCEPTED, because=_NEXT_SERVER)
    yield Case("half-no-address.example", PUBLISHED)
    yield Case("moved.example", INCONSISTENT, at={OLD: ""})
    yield Case("glue-old.example", INCONSISTENT, at={OLD: ""})
    yield Case(
        "half-moved.example", INCONSISTENT, at={OLD: ""}, mail=Mail.DEPENDS, because=_OTHER_SERVER
    )


CASES = list(_cases())
