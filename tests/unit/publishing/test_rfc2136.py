"""What a hostile or broken server can do to us: nothing but a clear error."""

from __future__ import annotations

import time

import dns.message
import dns.rrset
import pytest

from dkimctl.addresses import Address
from dkimctl.errors import DnsRefused, NegativeAnswer, ServiceError
from dkimctl.models import Secret
from dkimctl.publishing.plan import NameState
from dkimctl.publishing.rfc2136 import Rfc2136Target, UpdateTimeouts
from dkimctl.publishing.tsig_key import TsigKey
from dns_servers import SECRET
from scripted_dns import HangUp, framed, is_update, is_wildcard, reply, scripted_dns
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


def hang_up(wire: bytes) -> bytes:
    raise HangUp


def other_id(wire: bytes) -> bytes:
    answer = reply(wire, "value")
    return framed(bytes((answer[0] ^ 1,)) + answer[1:])


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
    "another message ID": (other_id, "it does not answer"),
    "half a message": (lambda wire: b"\xff\xff" + reply(wire, "value"), "it does not answer"),
    "drips": (drip, "it does not answer"),
    "tampered": (tampered, "the signature of its answer is wrong"),
    "truncated": (lambda wire: framed(reply(wire, flags="TC")), "it is truncated"),
    "another question": (
        lambda wire: framed(reply(wire).replace(b"_domainkey", b"_domainkeX")),
        "signature of its answer is wrong",
    ),
    "garbage": (lambda wire: framed(wire[:2] + b"\xff" * 500), "is not signed"),
    "an empty message": (lambda wire: framed(b"", b"x"), "it does not answer"),
    "a flood": (lambda wire: framed(*[b"no" + bytes(60_000)] * 20), "it does not answer"),
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
    error = raised.value
    assert reason in error.message
    assert "\n" not in error.message + error.hint
    assert SECRET not in f"{error!r} {error.hint} {error.__context__!r}"


@pytest.mark.parametrize(
    "kind", sorted(HOSTILE.keys() - {"truncated", "another question", "not authoritative"})
)
def test_an_update_without_a_good_answer_is_not_called_done(kind):
    say, _ = HOSTILE[kind]
    with scripted_dns(say) as server:
        applied = list(target_of(server).apply("example.com", [change(NAMES[0], "value")]))
    assert [one.change.fqdn for one in applied] == [NAMES[0]]
    assert isinstance(applied[0].error, DnsRefused | ServiceError)


def test_a_server_that_closes_after_each_answer_is_asked_again():
    def say(wire: bytes) -> bytes:
        raise HangUp(framed(reply(wire, "value")))

    with scripted_dns(say) as server:
        states = target_of(server).read("example.com", NAMES)
    assert states == dict.fromkeys(NAMES, NameState(("value",), 60))


def test_answers_may_come_in_any_order():
    waiting: list[bytes] = []

    def say(wire: bytes) -> bytes:
        if is_wildcard(wire):
            return framed(reply(wire))
        waiting.insert(0, framed(reply(wire, f"value {len(waiting)}")))
        return b"".join(waiting) if len(waiting) == len(NAMES) else b""

    with scripted_dns(say) as server:
        states = target_of(server).read("example.com", NAMES)
    assert [states[name].values for name in NAMES] == [(f"value {n}",) for n in range(3)]


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


def test_nothing_more_is_sent_after_an_update_that_was_lost():
    changes = [change(f"s{n}._domainkey.example.com", "v" * 4000) for n in range(40)]

    def say(wire: bytes) -> bytes:
        return hang_up(wire) if is_update(wire) else framed(reply(wire))

    with scripted_dns(say) as server:
        applied = list(target_of(server).apply("example.com", changes))
        assert sum(map(is_update, server.asked)) == 1
    assert len(applied) == len(changes)
    assert len({str(one.error) for one in applied}) == 1


class Names:
    """Accepts all updates, and makes those of names that it `makes`, some questions later."""

    def __init__(self, makes=lambda name: True, later: int = 0) -> None:
        self._makes = makes
        self._later = later
        self._values: dict[str, str] = {}

    def __call__(self, wire: bytes) -> bytes:
        if is_update(wire):
            for rrset in dns.message.from_wire(wire, keyring=False).update:
                if self._makes(str(rrset.name)):
                    self._values[str(rrset.name)] = b"".join(rrset[0].strings).decode()
            return framed(reply(wire))
        self._later -= 1
        name = str(dns.message.from_wire(wire, keyring=False).question[0].name)
        return framed(reply(wire, *self._values_of(name)))

    def _values_of(self, name: str) -> list[str]:
        return [self._values[name]] if name in self._values and self._later < 0 else []


def applied_by(say: Names, names: list[str]) -> dict[str, type]:
    with scripted_dns(say) as server:
        target = open_target(server.port, timeouts=UpdateTimeouts(change=0.5))
        applied = target.apply("example.com", [change(name, "value") for name in names])
        return {one.change.fqdn: type(one.error) for one in applied}


def test_what_is_accepted_and_dropped_is_refused():
    made = applied_by(Names(lambda name: ".d1." not in name), NAMES)
    assert made == {NAMES[0]: type(None), NAMES[1]: DnsRefused, NAMES[2]: type(None)}


@pytest.mark.parametrize("dropped", [{123}, set(range(0, 400, 10))])
def test_of_many_names_that_are_dropped_all_are_told(dropped):
    names = [f"s1._domainkey.d{number}.example.com" for number in range(400)]
    lost = {f"{names[number]}." for number in dropped}
    made = applied_by(Names(lambda name: name not in lost), names)
    assert len(made) == len(names)
    assert {name for name, error in made.items() if error is DnsRefused} == {
        names[number] for number in dropped
    }


def test_what_is_accepted_and_not_visible_at_all_may_be_forwarded():
    assert applied_by(Names(later=1 << 30), NAMES) == dict.fromkeys(NAMES, ServiceError)


def test_what_is_accepted_and_made_a_moment_later_is_done():
    assert applied_by(Names(later=len(NAMES) * 3), NAMES) == dict.fromkeys(NAMES, type(None))


RCODES = [
    ("REFUSED", DnsRefused, "refuses to update the zone example.com"),
    ("NOTAUTH", DnsRefused, "refuses to update the zone example.com (NOTAUTH)"),
    ("NOTIMP", DnsRefused, "refuses to update the zone example.com (NOTIMP)"),
    ("SERVFAIL", ServiceError, "failed to update the zone example.com"),
    ("FORMERR", ServiceError, "failed to update"),
    ("NOTZONE", ServiceError, "failed to update"),
    ("NXRRSET", NegativeAnswer, "has changed"),
    ("YXRRSET", NegativeAnswer, "has changed"),
    ("NXDOMAIN", NegativeAnswer, "has changed"),
    ("YXDOMAIN", NegativeAnswer, "has changed"),
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


def test_what_refuses_all_names_of_a_message_gets_no_other():
    changes = [change(f"s{n}._domainkey.example.com", "v" * 4000) for n in range(40)]
    with scripted_dns(lambda wire: framed(reply(wire, rcode="REFUSED"))) as server:
        applied = list(target_of(server).apply("example.com", changes))
        in_first = len(server.asked) // 2 + 1
    assert in_first < 20
    assert {type(one.error) for one in applied} == {DnsRefused}
    assert len(applied) == len(changes)


def test_access_is_not_known_if_the_server_fails():
    def say(wire: bytes) -> bytes:
        return framed(reply(wire, rcode="SERVFAIL" if is_update(wire) else "NXDOMAIN"))

    with scripted_dns(say) as server:
        access = target_of(server).check_access("example.com", NAMES)
    assert (access.readable, access.writable) == (True, None)
    assert "failed to update" in access.reason


def test_a_zone_that_is_not_loaded_is_found_by_where_failures_begin():
    def say(wire: bytes) -> bytes:
        name = dns.message.from_wire(wire, keyring=False).question[0].name
        return framed(reply(wire, rcode="SERVFAIL" if len(name) > 2 else "REFUSED"))

    with scripted_dns(say) as server:
        zones = target_of(server).find_zones(["s1._domainkey.a.example.com"])
    assert zones == {"s1._domainkey.a.example.com": "example.com"}


def test_a_server_name_without_address_is_named():
    target = Rfc2136Target("test", Address("no-such-host.invalid"), 60, timeouts=QUICK)
    with pytest.raises(ServiceError, match=r"cannot connect to .* no-such-host.invalid"):
        target.read("example.com", NAMES)


def test_a_server_is_found_by_name_at_any_of_its_addresses():
    with scripted_dns(lambda wire: framed(reply(wire, "value"))) as server:  # not at ::1
        key = TsigKey("dkim", "hmac-sha256", Secret(SECRET))
        target = Rfc2136Target(
            "test", Address("localhost", server.port), 60, lambda: key, timeouts=QUICK
        )
        assert target.read("example.com", NAMES[:1])[NAMES[0]].values == ("value",)
