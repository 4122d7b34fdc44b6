"""The verdict on a registration by what servers answer, and which servers are asked."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from unittest import mock

import dns.message
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.dns.check import Checker, CheckPolicy, Looks, check_publication, repeat_checks
from dkimctl.dns.messages import TXT, Answer
from dkimctl.dns.nameserver import NoAnswer, NoRoute
from dkimctl.dns.verdicts import Check, Finding, ServerFinding, Urgency, Verdict
from dkimctl.models import Registration, key_of
from fake_dns import FakeServer, FakeSource

NAME = "s1._domainkey.example.com"
DOUBLED = f"{NAME}.example.com"
SERVFAIL, REFUSED, NXDOMAIN = 2, 5, 3
LAME = "it is not authoritative for the zone (lame)"
NO_ROUTE = NoRoute("there is no route to it")
SILENT = NoAnswer("it does not answer")


@pytest.fixture
def value(key_records):
    return key_records[2048]


def two(first, second):
    """Two servers of a zone, with their answers."""
    return [FakeServer(f"{name}.test", answers={NAME: answer})
            for name, answer in (("a", first), ("b", second))]  # fmt: skip


def alias_of(target: str) -> Answer:
    return Answer(0, True, False, alias=target)


def referral_to(zone: str, *, values: tuple[bytes, ...] = ()) -> Answer:
    return Answer(0, False, False, values, delegated=zone)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [([], [], Verdict.MISSING), (["v=DKIM1; p="], ["v=DKIM1; p="], Verdict.REVOKED),
     (["x", "y"], ["x", "y"], Verdict.DUPLICATE), (["\udcff"], ["\udcff"], Verdict.MALFORMED),
     (SILENT, [], Verdict.MISSING), (SILENT, SILENT, Verdict.NO_ANSWER),
     (Answer(NXDOMAIN, True, False), [], Verdict.MISSING),
     (Answer(SERVFAIL, False, True), [], Verdict.MISSING),
     (["v=DKIM1; p="], [], Verdict.INCONSISTENT)],
)  # fmt: skip
def test_verdict_combines_what_all_servers_answer(check_one, first, second, verdict):
    assert check_one(*two(first, second)).finding.verdict is verdict


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SILENT, "it does not answer"),
        (Answer(16, True, False), "it answers BADVERS"),
        (Answer(NXDOMAIN, False, True), LAME),
        (Answer(0, False, True, (b"v=DKIM1; p=",)), LAME),
        (
            Answer(NXDOMAIN, True, False, (b"v=DKIM1; p=",)),
            "it answers NXDOMAIN, but with a record of that name",
        ),
        (referral_to("com"), LAME),
        (referral_to("."), LAME),
        (referral_to("an-example.com"), LAME),
    ],
)
def test_unusable_answer_is_never_missing(check_one, value, answer, reason):
    result = check_one(*two(answer, [value]))
    where = "example.com: TXT s1._domainkey.example.com"
    assert result.finding == Finding(
        Verdict.NO_ANSWER, f"{where}: published elsewhere; a.test: {reason}"
    )
    assert result.servers[0] == ServerFinding("a.test", Finding(Verdict.NO_ANSWER, reason))


def test_given_servers_may_answer_second_hand(check_one, value):
    server = FakeServer(answers={NAME: Answer(0, False, True, (value.encode(),))})
    assert check_one(server, is_given=True).finding.verdict is Verdict.PUBLISHED
    neither = FakeServer(answers={NAME: Answer(0, False, False, (value.encode(),))})
    assert check_one(neither, is_given=True).finding.verdict is Verdict.NO_ANSWER


def test_endless_delegations_are_no_answer(check_one):
    zones, zone = {}, "example.com"
    for number in range(20):
        below = f"z{number}.{zone}"
        zones[zone] = [FakeServer(zone, answers={NAME: referral_to(below)})]
        zone = below
    result = check_one(*zones.pop("example.com"), zones=zones)
    assert result.finding.verdict is Verdict.NO_ANSWER
    assert sum(len(servers[0].asked) for servers in zones.values()) < 10


@pytest.mark.parametrize("there", ["value", ()])
def test_server_that_has_what_others_delegate_counts(check_one, value, there):
    below = "_domainkey.example.com"
    servers = two(referral_to(below), [value])
    zones = {below: [FakeServer("below.test", answers={NAME: [value] if there else ()})]}
    verdict = check_one(*servers, zones=zones).finding.verdict
    assert verdict is (Verdict.PUBLISHED if there else Verdict.INCONSISTENT)
    result = check_one(*servers).finding  # nobody serves the zone below
    assert (result.verdict, LAME in result.reason) == (Verdict.NO_ANSWER, True)


def test_target_of_an_alias_is_not_taken_from_a_server_of_another_zone(check_one, value):
    stale = Answer(0, True, False, (value.encode(),), alias="k.example.net")
    there = FakeServer(answers={"k.example.net": []})
    result = check_one(FakeServer(answers={NAME: stale}), zones={"example.net": [there]})
    assert (result.finding.verdict, result.alias) == (Verdict.MISSING, "k.example.net")


LOOP = "its aliases (CNAME) are a loop, at k.example.net"


@pytest.mark.parametrize(
    ("there", "verdict", "reason"),
    [
        ([], Verdict.MISSING, ""),
        (["v=DKIM1; p="], Verdict.REVOKED, ""),
        (
            SILENT,
            Verdict.NO_ANSWER,
            "example.net: TXT k.example.net: there.test: it does not answer",
        ),
        (Answer(0, False, True, (b"x",)), Verdict.NO_ANSWER, "there.test: it is not authoritative"),
        (alias_of("k.example.net"), Verdict.MALFORMED, LOOP),
        (alias_of("two.example.net"), Verdict.MALFORMED, LOOP),
    ],
)
def test_verdict_is_that_of_the_target_of_an_alias(check_one, there, verdict, reason):
    here = FakeServer("here.test", answers={NAME: alias_of("k.example.net")})
    answers = {"k.example.net": there, "two.example.net": alias_of("k.example.net")}
    other = FakeServer("there.test", answers=answers)
    result = check_one(here, zones={"example.net": [other]})
    assert (result.finding.verdict, result.alias) == (verdict, "k.example.net")
    assert reason in result.finding.reason
    assert DOUBLED not in here.asked
    assert len(other.asked) == len(set(other.asked))


def test_chain_of_aliases_that_resolvers_do_not_follow_is_malformed(check_one, value):
    answers = {f"a{number}.example.net": alias_of(f"a{number + 1}.example.net")
               for number in range(30)}  # fmt: skip
    here = FakeServer(answers={NAME: alias_of("a20.example.net")})
    there = FakeServer(answers={**answers, "a30.example.net": [value]})
    assert check_one(here, zones={"example.net": [there]}).finding.verdict is Verdict.PUBLISHED
    here.answers[NAME] = alias_of("a19.example.net")
    reason = "more than 11 aliases (CNAME) in a row, up to a29.example.net"
    assert check_one(here, zones={"example.net": [there]}).finding == Finding(
        Verdict.MALFORMED, reason
    )


def test_a_silent_server_on_the_way_of_aliases_is_no_answer(check_one, value):
    here = FakeServer(answers={NAME: alias_of("k.example.net")})
    answers = {"k.example.net": alias_of("two.example.net"), "two.example.net": [value]}
    there = FakeServer("there.test", answers=answers)
    dead = FakeServer("dead.test", answers={**answers, "k.example.net": SILENT})
    result = check_one(here, zones={"example.net": [there, dead]}).finding
    assert result.verdict is Verdict.NO_ANSWER
    assert "example.net: TXT k.example.net: it does not answer" in result.reason


def test_servers_that_disagree_on_where_an_alias_leads_are_inconsistent(check_one):
    here = FakeServer(answers={NAME: alias_of("k.example.net")})
    there = [
        FakeServer(name, answers={"k.example.net": alias_of(target)})
        for name, target in (("a.test", "one.example.org"), ("b.test", "two.example.org"))
    ]
    result = check_one(here, zones={"example.net": there})
    reason = "the servers of k.example.net give different aliases, or none"
    assert result.finding == Finding(Verdict.INCONSISTENT, reason)


def test_loop_of_aliases_is_found_although_the_resolver_fails_at_it(check_one):
    here = FakeServer(answers={NAME: alias_of("k.example.net")})
    there = FakeServer(answers={"k.example.net": alias_of("k.example.net")})
    result = check_one(here, zones={"k.example.net": SILENT, "example.net": [there]})
    assert result.finding.verdict is Verdict.MALFORMED


@pytest.mark.parametrize("there", [Answer(REFUSED, False, False), referral_to("net")])
def test_given_server_does_not_have_the_target_of_an_alias(check_one, there):
    answers = {NAME: alias_of("k.example.net"), "k.example.net": there}
    server = FakeServer("192.0.2.1", answers=answers)
    result = check_one(server, is_given=True, zones={"example.net": [server]}).finding
    assert result.verdict is Verdict.NO_ANSWER
    assert "192.0.2.1: its alias leads to k.example.net: it " in result.reason


OTHER_TEXT = Answer(0, True, False, (b"v=spf1 -all",))


@pytest.mark.parametrize("expect_absent", [False, True])
@pytest.mark.parametrize(
    "wildcard",
    [OTHER_TEXT, alias_of("k.example.net"), Answer(0, True, False, (b"v=DKIM1; p=",))],
)
def test_answer_of_a_wildcard_is_missing(check_one, wildcard, expect_absent):
    server = FakeServer(wildcard=wildcard, answers={NAME: wildcard})
    there = FakeServer(answers={"k.example.net": ["v=spf1 -all"]})
    result = check_one(server, zones={"example.net": [there]}, expect_absent=expect_absent)
    assert result.finding == Finding(Verdict.MISSING, "a wildcard answers there")
    (sibling,) = (name for name in server.asked if name != NAME)
    assert sibling.partition(".")[2] == "_domainkey.example.com"


@pytest.mark.parametrize(
    ("there", "verdict"), [(None, Verdict.PUBLISHED), (SILENT, Verdict.NO_ANSWER)]
)
def test_record_that_the_alias_of_a_wildcard_publishes_is_not_absent(
    check_one, value, there, verdict
):
    alias = alias_of("k.example.net")
    server = FakeServer(wildcard=alias, answers={NAME: alias})
    other = FakeServer(answers={"k.example.net": there or [value]})
    result = check_one(server, zones={"example.net": [other]}, expect_absent=True)
    assert result.finding.verdict is verdict


@pytest.mark.parametrize("of_target", [False, True])
def test_record_below_a_name_that_its_server_denies_is_denied(check_one, value, of_target):
    """Resolvers that have been told so do not ask for it (RFC 8020)."""
    answers = {NAME: alias_of("s1.keys.example.net") if of_target else [value]}
    here, there = FakeServer(answers=answers), FakeServer("there.test", "example.net")
    there.answers["s1.keys.example.net"] = [value]
    zones = {"example.net": [there]}
    signed = {zone: {"is_secure": True} for zone in ("example.com", "example.net")}
    assert check_one(here, zones=zones, states=signed).finding.verdict is Verdict.PUBLISHED
    for server in (there, here) if of_target else (here,):
        server.denied = {"keys.example.net", "_domainkey.example.com"}
        unsigned = check_one(here, zones=zones).finding
        assert unsigned.verdict is Verdict.PUBLISHED  # resolvers go by signed denials alone
        result = check_one(here, zones=zones, states=signed).finding
        assert (result.verdict, result.seen) == (
            Verdict.DENIED, {Verdict.DENIED, Verdict.PUBLISHED},
        )  # fmt: skip
        assert f"`pdnsutil rectify-zone {server.zone}`" in result.reason
        if server is here:  # the record is still there
            result = check_one(here, zones=zones, states=signed, expect_absent=True).finding
            assert result.verdict is Verdict.PUBLISHED
        server.denied = set()


BOGUS = Finding(Verdict.BOGUS, "the resolver 192.0.2.9 cannot validate it (DNSSEC)")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [(None, Verdict.BOGUS), ([], Verdict.MISSING), (SILENT, Verdict.NO_ANSWER)],
)
def test_record_of_a_bogus_zone_is_bogus(check_one, value, answer, verdict):
    states, answer = {"example.com": {"bogus": BOGUS.reason}}, [value] if answer is None else answer
    assert check_one(*two(answer, answer), states=states).finding.verdict is verdict


@pytest.mark.parametrize("expected", [Finding(Verdict.PUBLISHED), BOGUS])
def test_record_of_a_secure_zone_is_validated(check, value, expected):
    source = FakeSource(
        {"example.com": [FakeServer(answers={NAME: [value]})]},
        states={"example.com": {"is_secure": True}},
        bogus_records={f"TXT {NAME}": expected.reason},
    )
    (result,) = check((), source=source)
    assert (result.finding, source.validated) == (expected, [f"TXT {NAME}"])


@pytest.mark.parametrize("expect_absent", [False, True])
def test_given_resolver_may_have_only_a_bogus_record(check_one, value, expect_absent):
    bogus = Answer(0, False, True, (value.encode(),), bogus=BOGUS.reason)
    server = FakeServer(answers={NAME: bogus})
    assert check_one(server, is_given=True, expect_absent=expect_absent).finding == BOGUS
    server.answers[NAME] = bogus._replace(values=())
    assert check_one(server, is_given=True).finding.verdict is Verdict.MISSING


def test_address_without_a_route_is_left_out_if_its_host_answers_at_another(check_one, value):
    servers = [
        FakeServer("a.test (2001:db8::1)", answers={NAME: NO_ROUTE}),
        FakeServer("a.test (192.0.2.1)", answers={NAME: [value]}),
    ]
    result = check_one(*servers)
    assert result.finding.verdict is Verdict.PUBLISHED
    assert [server.server for server in result.servers] == ["a.test (192.0.2.1)"]
    assert check_one(servers[0]).finding.verdict is Verdict.NO_ANSWER


PUBLISHED, MISSING = Verdict.PUBLISHED, Verdict.MISSING


class World:
    """DNS and time. Each record is published at its time, in seconds; a round takes `slowness`.

    Before the start means: at every second look, from the second on.
    """

    def __init__(self, published_at: list[float], slowness: float) -> None:
        self.published_at = published_at
        self.slowness = slowness
        self.now = 0.0
        self.rounds: list[float] = []  # when
        self.looks: dict[int, list[tuple[float, Verdict]]] = {}  # by record
        self.pauses: list[float] = []
        self.emptied: list[float] = []  # the caches, when
        self.source = SimpleNamespace(forget=lambda: self.emptied.append(self.now))

    def check(self, registrations):
        self.rounds.append(self.now)
        for registration in registrations:
            number = int(registration.selector)
            at, looks = self.published_at[number], self.looks.setdefault(number, [])
            is_there = at <= self.now if at >= 0 else len(looks) % 2
            verdict = PUBLISHED if is_there else MISSING
            looks.append((self.now, verdict))
            yield Check("example.com", registration.selector, "", None, None, Finding(verdict))
        self.now += self.slowness

    def pause(self, seconds, checks):
        assert all(check.finding.verdict in (PUBLISHED, MISSING) for check in checks)
        self.pauses.append(seconds)
        self.now += seconds


@given(
    st.lists(st.one_of(st.just(-1.0), st.floats(0, 2000)), max_size=5),
    st.floats(0, 1500),
    st.floats(0, 5),
)
def test_a_record_is_published_at_the_first_look_or_at_two_in_a_row_within_an_interval(
    published_at, seconds, slowness
):
    world = World(published_at, slowness)
    registrations = [Registration("example.com", str(n)) for n in range(len(published_at))]
    policy = CheckPolicy(seconds, timedelta(0), expect_absent=False)
    with mock.patch("dkimctl.dns.check.time.monotonic", side_effect=lambda: 500 + world.now):
        checks = repeat_checks(world, registrations, policy, world)
    assert world.emptied == world.rounds[1:]
    for number, check in enumerate(checks):
        *before, (last, verdict) = world.looks[number]
        assert check.finding.verdict is verdict
        assert last <= seconds + 5 + slowness + 1e-6
        if verdict is MISSING:
            assert world.now >= seconds - 1e-6
        elif before:
            assert before[-1][1] is PUBLISHED
            assert last >= before[-1][0] + 5
            assert last <= published_at[number] + 60 + 2 * (5 + slowness) + slowness
        assert verdict is MISSING or published_at[number] >= 0


def test_an_unexpected_error_comes_as_it_is(make_registration):
    """In a group of exceptions, its name would be lost."""
    server = FakeServer(answers={NAME: OSError("too many open files")})
    source = FakeSource({"example.com": [server]})
    registrations = [make_registration(selector=f"s{number}") for number in range(1, 4)]
    with pytest.raises(OSError, match="too many open files"):
        list(Checker(source).check(registrations))


def test_each_server_gets_its_questions_in_one_burst(check, make_registration):
    shared, other = FakeServer("shared.test"), FakeServer("other.test")
    zones = {"example.com": [shared], "example.net": [shared, other]}
    check(zones, *(make_registration(f"example.{tld}") for tld in ("com", "net", "org")))
    net = "s1._domainkey.example.net"
    assert (shared.bursts, other.bursts) == ([[NAME, net]], [[net]])


def test_checks_come_in_the_order_of_registrations(check, make_registration, monkeypatch):
    monkeypatch.setattr("dkimctl.dns.check._CHUNK", 90)
    registrations = [make_registration(f"d{n % 70}.example.com", f"s{n}") for n in range(300)]
    published = registrations[200].record
    server = FakeServer(answers={published.fqdn: [published.value]})
    checks = check({"example.com": [server]}, *registrations)
    assert [check.fqdn for check in checks] == [each.record.fqdn for each in registrations]
    assert [check.selector for check in checks if check.finding.verdict is PUBLISHED] == ["s200"]


def test_record_that_should_be_absent_is_not_looked_for_elsewhere(check_one, value):
    server = FakeServer(answers={f"{NAME}.example.com": [value]})
    assert check_one(server).finding.verdict is Verdict.MALFORMED
    server.asked.clear()
    assert check_one(server, expect_absent=True).finding == Finding(Verdict.MISSING)
    assert server.asked == [NAME]


class Recorder:
    """A progress that keeps what it is told, and does not sleep."""

    def __init__(self, on_pause=lambda: None) -> None:
        self.checks: list[Check] = []
        self.pauses: list[list[Verdict]] = []
        self.on_pause = on_pause

    def checked(self, check: Check) -> None:
        self.checks.append(check)

    def pause(self, seconds: float, checks) -> None:
        self.pauses.append([check.finding.verdict for check in checks])
        self.on_pause()


@pytest.fixture
def run():
    """Run check_publication at a server; gives what was emitted, the progress and the looks."""

    def run(server, *registrations, wait=0.0, expect_absent=False, progress=None, retired=()):
        progress, looks = progress or Recorder(), Looks()
        source = FakeSource({"example.com": [server]})
        policy = CheckPolicy(wait, timedelta(days=2), expect_absent)
        checks = check_publication(
            registrations, source, policy, progress=progress, looks=looks, retired=dict(retired)
        )
        return list(checks), progress, looks

    return run


def test_checks_are_pushed_in_order_with_their_urgency(run, make_registration, key_records):
    registrations = [
        make_registration(selector="s1", start_date="2020-01-01T00:00+00:00"),
        make_registration(selector="s2", start_date="2020-01-01T00:00+00:00"),
        make_registration(selector="s3", start_date="2999-01-01T00:00+00:00"),
        make_registration(
            selector="s4",
            start_date="2999-01-01T00:00+00:00",
            regist_date="2999-01-01T00:00:01+00:00",
        ),
    ]
    server = FakeServer(answers={NAME: [key_records[2048]]})
    emitted, progress, looks = run(server, *registrations)
    assert [(check.selector, check.finding.verdict, check.urgency) for check in emitted] == [
        ("s1", PUBLISHED, Urgency.NONE),
        ("s2", MISSING, Urgency.SIGNING),
        ("s3", MISSING, Urgency.NONE),
        ("s4", MISSING, Urgency.SIGNING),
    ]
    assert sorted(check.selector for check in progress.checks) == ["s1", "s2", "s3", "s4"]
    assert looks.latest == {
        key_of("example.com", selector): PUBLISHED if selector == "s1" else MISSING
        for selector in ("s1", "s2", "s3", "s4")
    }


@pytest.mark.parametrize("wait", [0.0, 60.0])
def test_a_missing_record_of_a_retired_key_is_good(run, make_registration, wait):
    start = {"start_date": "2020-01-01T00:00+00:00"}
    old, new = (make_registration(selector=one, **start) for one in ("s1", "s2"))
    retired = {old.key: "s2 has replaced it"}
    server = FakeServer(answers={new.record.fqdn: [new.record.value]})
    emitted, progress, looks = run(server, old, new, wait=wait, retired=retired)
    assert emitted[0].finding == Finding(Verdict.RETIRED, "s2 has replaced it")
    assert emitted[0].urgency is Urgency.NONE
    assert progress.pauses == [], "there is nothing to wait for"
    assert looks.latest == {old.key: MISSING, new.key: PUBLISHED}, "as DNS has it"
    server.answers[old.record.fqdn] = ["v=DKIM1; p="]
    [check], *_ = run(server, old, retired=retired)
    assert (check.finding.verdict, check.urgency) == (Verdict.REVOKED, Urgency.NONE)


def test_waiting_pushes_only_the_last_checks(run, make_registration, key_records):
    server = FakeServer()

    def publish():
        server.answers[NAME] = [key_records[2048]]

    progress = Recorder(on_pause=publish)
    emitted, _, looks = run(server, make_registration(), wait=60.0, progress=progress)
    assert [check.finding.verdict for check in emitted] == [PUBLISHED]
    assert progress.pauses == [[MISSING], [PUBLISHED]]
    assert [check.finding.verdict for check in progress.checks] == [MISSING, PUBLISHED, PUBLISHED]
    assert looks.latest == {key_of("example.com", "s1"): PUBLISHED}
    assert looks.breaks == {key_of("example.com", "s1"): MISSING}


@pytest.mark.parametrize(
    ("there", "verdict"),
    [
        ([], Verdict.MISSING),
        (Answer(NXDOMAIN, True, False), Verdict.MISSING),
        (["v=DKIM1; p="], Verdict.REVOKED),
        (["v=spf1 -all"], Verdict.MALFORMED),
        (None, Verdict.PUBLISHED),
        (SILENT, Verdict.NO_ANSWER),
        (alias_of("k.example.net"), Verdict.MALFORMED),
    ],
)
def test_an_alias_is_absent_if_it_leads_to_nothing(check_one, value, there, verdict):
    here = FakeServer(answers={NAME: alias_of("k.example.net")})
    other = FakeServer(answers={"k.example.net": [value] if there is None else there})
    result = check_one(here, zones={"example.net": [other]}, expect_absent=True)
    assert result.finding.verdict is verdict
    assert result.alias_end == ("" if "loop" in result.finding.reason else "k.example.net")


def soa(serial: int, primary: str = "ns.") -> Answer:
    made = dns.message.make_response(dns.message.make_query("example.com", "SOA"))
    data = f"{primary} root. {serial} 2 3 4 60"
    made.answer = [dns.rrset.from_text("example.com.", 60, "IN", "SOA", data)]
    return Answer(0, True, False, message=made)


@pytest.mark.parametrize(
    ("apex", "cause"),
    [
        (soa(1), " for this name alone: its data there is broken; its log says more"),
        (
            Answer(SERVFAIL, False, False),
            " for the whole zone: it is not loaded there, or has expired; its log says more",
        ),
        (Answer(REFUSED, False, False), ""),
        (Answer(0, True, False), ""),
        (SILENT, ""),
    ],
)
def test_servfail_has_the_cause_that_the_soa_record_shows(check_one, apex, cause):
    failing = FakeServer("a.test", answers={NAME: Answer(SERVFAIL, False, False)})
    failing.answers["example.com"] = apex
    [found] = check_one(failing).servers
    assert found.finding == Finding(Verdict.NO_ANSWER, f"it answers SERVFAIL{cause}")


class ChangingServer(FakeServer):
    """Has the serial numbers and the values of the record one after the other, the last ones on."""

    def __init__(
        self, label: str, serials: list[int], values: list[list[str]], primary: str = "ns."
    ) -> None:
        super().__init__(label)
        self.serials, self.values, self.primary = serials, values, primary

    async def ask(self, question):
        name = question.name.to_text(omit_final_dot=True)
        if name == "example.com":
            serial = self.serials.pop(0) if self.serials[1:] else self.serials[0]
            return soa(serial, self.primary)
        if name == NAME and question.rdtype == TXT:
            self.answers = {NAME: self.values.pop(0) if self.values[1:] else self.values[0]}
        return await super().ask(question)


OLDER = "the others have an older zone (serial number {}, not {}): wait for the transfer"
NEWER = "the others have a newer zone (serial number {}, not {}): make the change again"
SAME = "all have serial number 7, so no transfer comes: raise it at the primary"


@pytest.mark.parametrize(
    ("first", "second", "later", "reason"),
    [
        ([7], [7], [[]], SAME),
        ([7], [6], [[]], OLDER.format(6, 7)),
        ([2], [2**32 - 3], [[]], OLDER.format(2**32 - 3, 2)),  # they wrap around
        ([6], [7], [[]], NEWER.format(7, 6)),
        ([7], [7], [[], ["right"]], ""),  # a transfer came after it was asked
        ([7], [7, 8], [[]], ""),
        ([7, 8], [7], [[]], ""),
    ],
)
def test_serial_numbers_tell_why_servers_disagree(check_one, value, first, second, later, reason):
    values = [[value] if found == ["right"] else found for found in later]
    finding = check_one(
        ChangingServer("a.test", first, [[value]]), ChangingServer("b.test", second, values)
    ).finding
    assert finding.verdict is Verdict.INCONSISTENT
    says = "published at 1 of 2 servers; b.test: missing"
    assert finding.reason == (f"{says}; {reason}" if reason else says)


@pytest.mark.parametrize("primary", ["NS.", "other."])
def test_servers_with_other_primaries_need_the_record_at_each(check_one, value, primary):
    servers = ChangingServer("a.test", [7], [[value]]), ChangingServer("b.test", [6], [[]], primary)
    other = "they name different primaries in their SOA records: publish the record at each"
    reason = other if primary == "other." else OLDER.format(6, 7)
    assert check_one(*servers).finding.reason.endswith(f"; {reason}")
