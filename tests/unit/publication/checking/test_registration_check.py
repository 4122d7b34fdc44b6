"""What is told of a registration by what servers say, and which servers are asked."""

from __future__ import annotations

import pytest

from dkimctl.publication.verdicts import Finding, ServerFinding, Verdict
from dkimctl.resolver.messages import Answer
from dkimctl.resolver.server import NoAnswer, NoRoute

NAME = "s1._domainkey.example.com"
DOUBLED = f"{NAME}.example.com"
SERVFAIL, REFUSED, NXDOMAIN = 2, 5, 3
NO_ROUTE = NoRoute("there is no route to it")
SILENT = NoAnswer("it does not answer")


@pytest.fixture
def value(key_records):
    return key_records[2048]


@pytest.fixture
def two(fake_server):
    """Two servers of a zone: the second says what is given, the first as well unless told."""

    def make(second, first=None):
        return [
            fake_server(f"{name}.test", said={NAME: said})
            for name, said in (("a", second if first is None else first), ("b", second))
        ]

    return make


def alias_of(target: str) -> Answer:
    return Answer(0, True, False, alias=target)


def referral_to(zone: str, *, values: tuple[bytes, ...] = ()) -> Answer:
    return Answer(0, False, False, values, delegated=zone)


def test_a_check_tells_what_it_is_of_and_what_each_server_says(
    check, make_registration, two, value
):
    registration = make_registration(start_date="2027-01-01T00:00+09:00", enable=True)
    (found,) = check({"example.com": two([value])}, registration)
    published = Finding(Verdict.PUBLISHED)
    assert found[:6] == (
        "example.com", "s1", NAME, "2027-01-01T00:00+09:00", True, published,
    )  # fmt: skip
    assert found.servers == (ServerFinding("a.test", published), ServerFinding("b.test", published))
    assert found.alias == ""


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ([], [], Verdict.MISSING),
        (["v=DKIM1; p="], ["v=DKIM1; p="], Verdict.REVOKED),
        (["x", "y"], ["x", "y"], Verdict.DUPLICATE),
        (["\udcff"], ["\udcff"], Verdict.MALFORMED),
        (SILENT, [], Verdict.MISSING),
        (SILENT, SILENT, Verdict.NO_ANSWER),
        (Answer(NXDOMAIN, True, False), [], Verdict.MISSING),
        (Answer(SERVFAIL, False, True), [], Verdict.MISSING),
        (["v=DKIM1; p="], [], Verdict.INCONSISTENT),
    ],
)
def test_what_servers_say_together_is_the_verdict(check_one, two, first, second, verdict):
    assert check_one(*two(second, first=first)).finding.verdict is verdict


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (SILENT, "it does not answer"),
        (Answer(SERVFAIL, True, False), "it answers SERVFAIL"),
        (Answer(REFUSED, False, False), "it answers REFUSED"),
        (Answer(16, True, False), "it answers BADVERS"),
        (Answer(0, False, False), "it does not speak for the zone (lame)"),
        (Answer(NXDOMAIN, False, True), "it does not speak for the zone (lame)"),
        (Answer(0, False, True, (b"v=DKIM1; p=",)), "it does not speak for the zone (lame)"),
        (referral_to("com"), "it does not speak for the zone (lame)"),
        (referral_to("."), "it does not speak for the zone (lame)"),
        (referral_to("example.com"), "it does not speak for the zone (lame)"),
        (referral_to("an-example.com"), "it does not speak for the zone (lame)"),
    ],
)
def test_what_is_no_useful_answer_is_never_missing(check_one, two, value, said, reason):
    found = check_one(*two([value], first=said))
    assert found.finding == Finding(Verdict.NO_ANSWER, f"published elsewhere; a.test: {reason}")
    assert found.servers[0] == ServerFinding("a.test", Finding(Verdict.NO_ANSWER, reason))


def test_where_recursion_is_taken_second_hand_answers_count(check_one, fake_server, value):
    server = fake_server(said={NAME: Answer(0, False, True, (value.encode(),))})
    assert check_one(server, is_given=True).finding.verdict is Verdict.PUBLISHED
    neither = fake_server(said={NAME: Answer(0, False, False, (value.encode(),))})
    assert check_one(neither, is_given=True).finding.verdict is Verdict.NO_ANSWER


def test_a_domain_in_no_zone_is_missing_with_the_reason(check, make_registration):
    (found,) = check({}, make_registration("nowhere.example"))
    assert found.finding == Finding(Verdict.MISSING, "DNS has no zone for nowhere.example")
    assert found.servers == ()


def test_where_the_zone_cannot_be_found_nothing_is_known(check):
    (found,) = check({"example.com": NoAnswer("the resolver 192.0.2.9: it does not answer")})
    assert found.finding.verdict is Verdict.NO_ANSWER
    assert "192.0.2.9" in found.finding.reason


def test_a_delegation_is_followed_down(check_one, two, fake_server, value):
    below = fake_server("below.test", said={NAME: [value]})
    found = check_one(
        *two(referral_to("_domainkey.example.com")), zones={"_domainkey.example.com": [below]}
    )
    assert found.finding.verdict is Verdict.PUBLISHED
    assert [server.server for server in found.servers] == ["below.test"]


def test_one_server_that_refers_down_is_enough(check_one, two, fake_server, value):
    below = fake_server("below.test", said={NAME: [value]})
    servers = two([], first=referral_to("_domainkey.example.com"))
    found = check_one(*servers, zones={"_domainkey.example.com": [below]})
    assert found.finding.verdict is Verdict.PUBLISHED


def test_a_delegation_to_nobody_is_no_answer(check_one, two):
    found = check_one(*two(referral_to("_domainkey.example.com")))
    assert found.finding == Finding(
        Verdict.NO_ANSWER, "DNS names no server for _domainkey.example.com"
    )


def test_delegations_without_end_are_no_answer(check_one, fake_server):
    zones, zone = {}, "example.com"
    for number in range(20):
        below = f"z{number}.{zone}"
        zones[zone] = [fake_server(zone, said={NAME: referral_to(below)})]
        zone = below
    found = check_one(*zones.pop("example.com"), zones=zones)
    assert found.finding.verdict is Verdict.NO_ANSWER
    assert sum(len(servers[0].asked) for servers in zones.values()) < 10


def test_a_delegation_that_leads_back_up_is_no_answer(check_one, fake_server):
    top = fake_server(said={NAME: referral_to("_domainkey.example.com")})
    below = fake_server("below.test", said={NAME: referral_to("example.com")})
    found = check_one(top, zones={"_domainkey.example.com": [below]})
    assert found.finding == Finding(
        Verdict.NO_ANSWER, "below.test: it does not speak for the zone (lame)"
    )
    assert (len(top.asked), len(below.asked)) == (1, 1)


def test_an_alias_within_the_answer_is_reported(check_one, fake_server, value):
    answer = Answer(0, True, False, (value.encode(),), alias="k.example.com")
    found = check_one(fake_server(said={NAME: answer}), is_given=True)
    assert (found.finding.verdict, found.alias) == (Verdict.PUBLISHED, "k.example.com")


def test_where_an_alias_leads_a_server_is_not_believed_that_does_not_speak_for_it(
    check_one, fake_server, value
):
    stale = Answer(0, True, False, (value.encode(),), alias="k.example.net")
    there = fake_server(said={"k.example.net": []})
    found = check_one(fake_server(said={NAME: stale}), zones={"example.net": [there]})
    assert (found.finding.verdict, found.alias) == (Verdict.MISSING, "k.example.net")


def test_a_record_of_a_name_that_is_said_not_to_be_is_not_believed(check_one, fake_server, value):
    found = check_one(fake_server(said={NAME: Answer(3, True, False, (value.encode(),))}))
    assert found.finding.verdict is Verdict.NO_ANSWER


@pytest.mark.parametrize("target", ["k.example.com", "k.example.net"])
def test_an_alias_is_followed_within_the_zone_and_into_others(
    check_one, fake_server, value, target
):
    here = fake_server("here.test", said={NAME: alias_of(target), target: [value]})
    there = fake_server("there.test", said={target: [value]})
    found = check_one(here, zones={"example.net": [there]})
    assert (found.finding.verdict, found.alias) == (Verdict.PUBLISHED, target)
    assert [server.server for server in found.servers] == ["here.test"]


@pytest.mark.parametrize(
    ("there", "verdict"),
    [
        ([], Verdict.MISSING),
        (["v=DKIM1; p="], Verdict.REVOKED),
        (SILENT, Verdict.NO_ANSWER),
        (Answer(SERVFAIL, False, False), Verdict.NO_ANSWER),
        (Answer(0, False, True, (b"x",)), Verdict.NO_ANSWER),
    ],
)
def test_what_stands_where_an_alias_leads_counts(check_one, fake_server, there, verdict):
    here = fake_server("here.test", said={NAME: alias_of("k.example.net")})
    other = fake_server("there.test", said={"k.example.net": there})
    found = check_one(here, zones={"example.net": [other]})
    assert found.finding.verdict is verdict
    assert found.alias == "k.example.net"
    assert DOUBLED not in here.asked


def test_servers_that_disagree_where_an_alias_leads_are_told(check_one, fake_server, value):
    here = fake_server(said={NAME: alias_of("k.example.net")})
    there = [fake_server(name, said={"k.example.net": said}) for name, said in
             (("a.test", [value]), ("b.test", []))]  # fmt: skip
    found = check_one(here, zones={"example.net": there})
    assert found.finding.verdict is Verdict.INCONSISTENT
    assert "b.test: missing" in found.finding.reason


def test_an_alias_into_no_zone_is_missing(check_one, fake_server):
    found = check_one(fake_server(said={NAME: alias_of("k.nowhere.example")}))
    assert found.finding.verdict is Verdict.MISSING


def test_an_alias_whose_zone_cannot_be_found_is_no_answer(check_one, fake_server):
    here = fake_server(said={NAME: alias_of("k.example.net")})
    assert check_one(here, zones={"example.net": SILENT}).finding.verdict is Verdict.NO_ANSWER


@pytest.mark.parametrize("names", [["one.example.net"], ["one.example.net", "two.example.net"]])
def test_aliases_that_lead_in_a_circle_are_no_answer(check_one, fake_server, names):
    here = fake_server(said={NAME: alias_of(names[0])})
    circle = zip(names, [*names[1:], names[0]], strict=True)
    there = fake_server(said={name: alias_of(target) for name, target in circle})
    found = check_one(here, zones={"example.net": [there]})
    assert found.finding.verdict is Verdict.NO_ANSWER
    assert "on and on" in found.finding.reason
    assert len(there.asked) < 20


def test_aliases_that_lead_in_a_circle_do_not_multiply_the_questions(check_one, fake_server):
    here = [fake_server(said={NAME: alias_of("one.example.net")}) for _ in range(2)]
    there = [fake_server(said={"one.example.net": alias_of("one.example.net")}) for _ in range(2)]
    assert check_one(*here, zones={"example.net": there}).finding.verdict is Verdict.NO_ANSWER
    assert sum(len(server.asked) for server in there) < 100


@pytest.mark.parametrize("told", ["example.com", ""])
def test_a_record_below_the_doubled_name_of_the_zone_is_malformed(
    check_one, fake_server, value, told
):
    found = check_one(fake_server(zone=told, said={DOUBLED: [value]}))
    assert found.finding.verdict is Verdict.MALFORMED
    assert f"it stands at {DOUBLED}" in found.finding.reason


def test_the_zone_that_is_doubled_is_the_one_that_answers(check_one, fake_server, value):
    zone = "_domainkey.example.com"
    below = fake_server(zone=zone, said={f"{NAME}.{zone}": [value]})
    found = check_one(fake_server(said={NAME: referral_to(zone)}), zones={zone: [below]})
    assert found.finding.verdict is Verdict.MALFORMED


@pytest.mark.parametrize("there", [[], ["v=spf1 -all"], SILENT, Answer(REFUSED, True, False)])
def test_something_else_below_the_doubled_name_means_nothing(check_one, fake_server, there):
    found = check_one(fake_server(said={DOUBLED: there}))
    assert found.finding == Finding(Verdict.MISSING)


def test_a_doubled_name_that_is_too_long_is_not_asked_for(check, make_registration, fake_server):
    domain = ".".join(["d" * 50] * 4) + ".example"
    server = fake_server(zone=domain)
    (found,) = check({domain: [server]}, make_registration(domain))
    assert found.finding.verdict is Verdict.MISSING
    assert len(server.asked) == 1


def test_what_is_to_be_absent_is_not_looked_for_elsewhere(check_one, fake_server, value):
    server = fake_server(said={DOUBLED: [value]})
    found = check_one(server, expect_absent=True)
    assert found.finding == Finding(Verdict.MISSING)
    assert server.asked == [NAME]


def test_absent_is_only_what_every_server_says(check_one, two):
    found = check_one(*two([], first=SILENT), expect_absent=True)
    assert found.finding.verdict is Verdict.NO_ANSWER


def test_an_address_without_a_route_is_left_out_where_its_host_answers_at_another(
    check_one, fake_server, value
):
    servers = [
        fake_server("a.test (2001:db8::1)", said={NAME: NO_ROUTE}),
        fake_server("a.test (192.0.2.1)", said={NAME: [value]}),
    ]
    found = check_one(*servers)
    assert found.finding.verdict is Verdict.PUBLISHED
    assert [server.server for server in found.servers] == ["a.test (192.0.2.1)"]


def test_a_host_without_any_route_is_no_answer(check_one, two, value):
    found = check_one(*two([value], first=NO_ROUTE))
    assert found.finding == Finding(
        Verdict.NO_ANSWER, "published elsewhere; a.test: there is no route to it"
    )


@pytest.mark.parametrize("other", [NO_ROUTE, SILENT])
def test_where_none_answers_a_lack_of_routes_is_no_answer(check_one, two, other):
    found = check_one(*two(other, first=NO_ROUTE)).finding
    assert found.verdict is Verdict.NO_ANSWER
    assert str(other) in found.reason


def test_an_address_without_a_route_is_left_out_where_an_alias_leads(check_one, fake_server, value):
    here = fake_server(said={NAME: alias_of("k.example.net")})
    there = [
        fake_server("a.test (2001:db8::1)", said={"k.example.net": NO_ROUTE}),
        fake_server("a.test (192.0.2.1)", said={"k.example.net": [value]}),
    ]
    assert check_one(here, zones={"example.net": there}).finding.verdict is Verdict.PUBLISHED


def test_names_have_no_case(check, make_registration, fake_server, value):
    registration = make_registration("Example.COM", "S1")
    server = fake_server(said={NAME: [value]})
    (found,) = check({"Example.COM": [server]}, registration)
    assert found.finding.verdict is Verdict.PUBLISHED
    assert found.fqdn == "S1._domainkey.Example.COM"
