"""What a hostile or broken server can do to us: nothing but a clear error."""

from __future__ import annotations

import socket
import time

import dns.message
import dns.rrset
import pytest

from dkimctl.addresses import Address
from dkimctl.errors import DnsRefused, NegativeAnswer, ServiceError
from dkimctl.publishing.rfc2136 import Rfc2136Target, UpdateTimeouts
from dns_servers import SECRET
from scripted_dns import HangUp, framed, is_update, reply, scripted_dns
from update_servers import change, open_target

NAMES = [f"s1._domainkey.d{number}.example.com" for number in range(3)]
QUICK = UpdateTimeouts(connect=1.0, answer=0.6, update=0.6)


def target_of(server):
    return open_target(server.port, timeouts=QUICK)


def unsigned(wire: bytes) -> bytes:
    asked = dns.message.from_wire(wire, keyring=False)
    made = dns.message.make_response(dns.message.make_query(asked.question[0].name, "TXT"))
    made.id = asked.id
    made.answer = [dns.rrset.from_text(asked.question[0].name, 60, "IN", "TXT", '"forged"')]
    return framed(made.to_wire())


def reply_framed(wire: bytes) -> bytes:
    return framed(reply(wire))


def hang_up(wire: bytes) -> bytes:
    raise HangUp


def tampered(wire: bytes) -> bytes:
    answer = reply(wire, "value")
    return framed(answer[:2] + bytes((answer[2] ^ 1,)) + answer[3:])


def drip(wire: bytes) -> bytes:
    time.sleep(0.1)
    return b"\xff"


HOSTILE = {
    "unsigned": (unsigned, "its answer (NOERROR) is not signed"),
    "closes": (hang_up, "it closed the connection"),
    "silent": (lambda wire: b"", "it does not answer"),
    "drips": (drip, "it does not answer"),
    "tampered": (tampered, "the signature of its answer is wrong"),
    "truncated": (lambda wire: framed(reply(wire, flags="TC")), "it is truncated"),
    "garbage": (lambda wire: framed(wire[:2] + b"\xff" * 500), "is not signed"),
    "not authoritative": (lambda wire: framed(reply(wire, "v", flags="")), "itself"),
    "REFUSED": (lambda wire: framed(reply(wire, rcode="REFUSED")), "answers REFUSED to TXT"),
    "SERVFAIL": (lambda wire: framed(reply(wire, rcode="SERVFAIL")), "answers SERVFAIL to TXT"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_server_that_cannot_be_believed_is_not(kind):
    say, reason = HOSTILE[kind]
    with scripted_dns(say) as server:
        started = time.monotonic()
        with pytest.raises((DnsRefused, ServiceError)) as raised:
            target_of(server).read("example.com", NAMES)
        assert time.monotonic() - started < 3
        if kind not in ("truncated", "not authoritative"):
            [done] = target_of(server).apply("example.com", [change(NAMES[0], "value")])
            assert done.fqdn == NAMES[0]
            assert isinstance(done.error, DnsRefused | ServiceError)
    error = raised.value
    assert reason in error.message
    assert "\n" not in error.message + error.hint
    assert SECRET not in f"{error!r} {error.hint} {error.__context__!r}"


AFTERWARDS = [
    ("the new value", ["new"], type(None)),
    ("the old value", [], ServiceError),
    ("another value", ["other"], NegativeAnswer),
]


@pytest.mark.parametrize(("case", "values", "kind"), AFTERWARDS)
@pytest.mark.parametrize("failing", ["closes", "silent", "unsigned"])
def test_an_update_without_answer_is_looked_up(case, values, kind, failing):
    def say(wire: bytes) -> bytes:
        if is_update(wire):
            return hang_up(wire) if failing == "closes" else framed(b"??") * (failing != "silent")
        return framed(reply(wire, *values))

    with scripted_dns(say) as server:
        applied = list(target_of(server).apply("example.com", [change(NAMES[0], "new")]))
    assert [type(one.error) for one in applied] == [kind]


RCODES = [
    ("REFUSED", DnsRefused, "answers REFUSED to the update of the zone example.com"),
    ("NOTAUTH", DnsRefused, "answers NOTAUTH to the update"),
    ("NOTIMP", DnsRefused, "answers NOTIMP to the update"),
    ("SERVFAIL", ServiceError, "answers SERVFAIL to the update"),
    ("NXRRSET", ServiceError, "answers NXRRSET to"),
    ("YXRRSET", ServiceError, "answers YXRRSET to"),
    ("NXDOMAIN", ServiceError, "still has the old record at"),
]


@pytest.mark.parametrize(("rcode", "kind", "text"), RCODES)
def test_every_rcode_has_its_message_and_hint(rcode, kind, text):
    with scripted_dns(lambda wire: framed(reply(wire, rcode=rcode))) as server:
        changes = [change(name, "value") for name in NAMES]
        applied = list(target_of(server).apply("example.com", changes))
    errors = [one.error for one in applied]
    assert [type(error) for error in errors] == [kind] * len(NAMES)
    assert text in errors[0].message
    assert errors[0].hint
    assert "\n" not in errors[0].message + errors[0].hint


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(hang_up, ServiceError), (lambda wire: framed(reply(wire, rcode="REFUSED")), DnsRefused)],
)
def test_no_other_message_is_sent_after_one_that_is_lost_or_refused_for_all_names(answer, kind):
    changes = [change(f"s{n}._domainkey.example.com", "v" * 4000) for n in range(40)]
    with scripted_dns(lambda wire: (answer if is_update(wire) else reply_framed)(wire)) as server:
        applied = list(target_of(server).apply("example.com", changes))
        names = [
            len(dns.message.from_wire(wire, keyring=False).update)
            for wire in server.asked
            if is_update(wire)
        ]
    assert sum(names) / max(names) < 20
    assert {type(one.error) for one in applied} == {kind}
    assert len(applied) == len(changes)


def test_a_zone_that_is_not_loaded_is_found_by_where_failures_begin():
    def say(wire: bytes) -> bytes:
        name = dns.message.from_wire(wire, keyring=False).question[0].name
        return framed(reply(wire, rcode="SERVFAIL" if len(name) > 2 else "REFUSED"))

    with scripted_dns(say) as server:
        zones = target_of(server).find_zones(["s1._domainkey.a.example.com"])
    assert zones == {"s1._domainkey.a.example.com": "example.com"}


@pytest.mark.parametrize(("made", "kind"), [(NAMES[:1], DnsRefused), ([], ServiceError)])
def test_what_is_accepted_and_not_made_is_not_called_done(made, kind):
    def say(wire: bytes) -> bytes:
        name = str(dns.message.from_wire(wire, keyring=False).question[0].name)
        return framed(reply(wire, *["value"] * (name.removesuffix(".") in made)))

    with scripted_dns(say) as server:
        target = open_target(server.port, timeouts=UpdateTimeouts(change=0.3))
        applied = list(target.apply("example.com", [change(name, "value") for name in NAMES]))
    assert {each.fqdn for each in applied if each.error is None} == set(made)
    assert {type(each.error) for each in applied if each.error} == {kind}


def test_a_server_has_several_addresses_of_which_one_may_go_down(monkeypatch):
    find = socket.getaddrinfo

    def say(wire: bytes) -> bytes:
        return framed(reply(wire, "value"))

    with scripted_dns(say) as left:
        with scripted_dns(say) as first:
            both = [find("127.0.0.1", server.port, 0, 1)[0] for server in (first, left)]
            names = {"ns.test": both}
            monkeypatch.setattr(
                socket, "getaddrinfo", lambda *args: names.get(args[0]) or find(*args)
            )
            target = Rfc2136Target("test", Address("ns.test"), 60, timeouts=QUICK)
            reads = [target.read("example.com", NAMES[:1])]
        reads.append(target.read("example.com", NAMES[:1]))
    assert [read[NAMES[0]].values for read in reads] == [("value",)] * 2
    names["ns.test"] = []
    with pytest.raises(ServiceError, match=r"cannot connect to the DNS server ns.test"):
        target.read("example.com", NAMES[:1])
