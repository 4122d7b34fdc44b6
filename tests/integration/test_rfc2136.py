"""named, Knot DNS and PowerDNS take our changes, and nothing else changes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time

import dns.query
import dns.tsig
import dns.update
import dns.zonefile
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dkimctl.addresses import Address
from dkimctl.errors import DkimctlError, DnsRefused, NegativeAnswer, ServiceError
from dkimctl.publishing.plan import Change, NameState
from dkimctl.publishing.rfc2136 import Rfc2136Target, UpdateTimeouts
from dns_servers import SECRET, WRONG_SECRET, Server, key_file, running, serving
from name_servers import server_command
from ports import free_port
from published import register
from update_servers import (
    KEY,
    NAMES,
    OLD,
    SHADOWED,
    UPDATED,
    WHOLE,
    WILD,
    ZONE,
    change,
    open_target,
    serial,
    serving_updates,
    transfer,
)


@pytest.fixture
def serve(needs_tool, tmp_path):
    """Start a server, with more lines in its zone file."""
    with contextlib.ExitStack() as running:

        def start(program: str, lines: str = "", **options: str) -> Server:
            context = serving_updates(program, tmp_path, needs_tool, ZONE + lines, **options)
            return running.enter_context(context)

        yield start


@pytest.fixture(params=UPDATED)
def program(request) -> str:
    return request.param


def errors(applied) -> dict[str, DkimctlError | None]:
    return {one.fqdn: one.error for one in applied}


def new(name: str) -> Change:
    return change(name, KEY)


def publish(target, wanted: dict[str, str | None]) -> dict[str, DkimctlError | None]:
    """What a plan and its application do, with all names in one zone."""
    states = target.read("example.com", list(wanted))
    changes = [
        change(name, value, states[name])
        for name, value in wanted.items()
        if states[name].values != (() if value is None else (value,))
    ]
    return errors(target.apply("example.com", changes))


def test_changes_are_made_once_and_no_other_record_is_touched(serve, program):
    server = serve(program, OLD)
    before = transfer(server)
    target = open_target(server.port)
    wanted = {NAMES[0]: KEY, NAMES[1]: KEY, NAMES[2]: None}
    assert publish(target, wanted) == dict.fromkeys(wanted)
    assert [server.ask(name) for name in wanted] == [[KEY.encode()], [KEY.encode()], []]
    assert publish(target, wanted) == {}
    ours = {(f"{name}.", "TXT") for name in wanted}
    assert {one for one in transfer(server) if one[:2] not in ours} == {
        one for one in before if one[:2] not in ours
    }
    assert {one[2] for one in transfer(server) if one[:2] in ours} == {3600}


def test_zones_are_those_that_the_server_answers_for(serve, program):
    target = open_target(serve(program).port)
    alias, delegated, outside = (
        f"s1._domainkey.{domain}" for domain in ("alias.example.com", "x.sub.example.com", "test")
    )
    assert target.find_zones([NAMES[0], alias, delegated, outside]) == {
        NAMES[0]: "example.com", alias: "example.com", delegated: "example.com", outside: None,
    }  # fmt: skip
    other = "other._domainkey.example.com"
    assert target.read("example.com", [NAMES[0], alias, delegated, other]) == {
        NAMES[0]: NameState(),
        alias: NameState(alias="key.example.net"),
        delegated: NameState(delegated="sub.example.com"),
        other: NameState(("v=DKIM1; p=other",), 5),
    }


def test_access_is_checked_without_a_change(serve, program):
    server = serve(program)
    before = transfer(server), serial(server)
    assert open_target(server.port).check_access("example.com", NAMES) == (True, True, "", "")
    assert (transfer(server), serial(server)) == before


WRONG = [
    ("secret", {"secret": WRONG_SECRET}, "BADSIG"),
    ("name", {"key": "other"}, "BADKEY"),
    ("algorithm", {"algorithm": "hmac-sha512"}, "BADKEY"),
    ("clock", {}, "its clock is (2 h|1 h 59 min)"),
]


@pytest.mark.parametrize(("part", "options", "reason"), WRONG, ids=[one[0] for one in WRONG])
def test_a_wrong_key_is_refused_and_explained(serve, program, part, options, reason, monkeypatch):
    server = serve(program)
    if part == "clock":
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() - 7200)
    before = transfer(server), serial(server)
    target = open_target(server.port, **options)
    if program == "pdns_server":
        reason = "is not signed"  # it says no more
    with pytest.raises(DnsRefused, match=reason) as raised:
        target.read("example.com", NAMES)
    failed = errors(target.apply("example.com", list(map(new, NAMES))))
    assert all(re.search(reason, str(error)) for error in failed.values())
    again = re.escape(raised.value.message)
    if part == "clock":  # a second later it may differ by a second less
        again = reason
    with pytest.raises(DnsRefused, match=again):
        target.check_access("example.com", NAMES)
    assert raised.value.hint
    assert (transfer(server), serial(server)) == before
    for secret in (SECRET, WRONG_SECRET):
        assert secret not in repr(raised.value) + raised.value.hint + repr(vars(target))


OTHER_KEY = {
    "named": {"more": f'key "other" {{ algorithm hmac-sha256; secret "{SECRET}"; }};\n'},
    "pdns_server": {"key": "nobody"},
}


@pytest.mark.parametrize("program", OTHER_KEY)  # to Knot DNS, such a key is unknown
def test_a_key_without_permission_is_refused_and_explained(serve, program):
    server = serve(program, **OTHER_KEY[program])
    before = transfer(server), serial(server)
    key = "dkim" if program == "pdns_server" else "other"
    target = open_target(server.port, key=key)
    assert target.read("example.com", NAMES) == dict.fromkeys(NAMES, NameState())
    failed = errors(target.apply("example.com", list(map(new, NAMES))))
    assert set(failed) == set(NAMES)
    for error in failed.values():
        assert isinstance(error, DnsRefused)
        assert f"allow the TSIG key {key} to read and change TXT records" in error.hint
    assert target.check_access("example.com", NAMES) == (True, False, error.message, error.hint)
    assert (transfer(server), serial(server)) == before


def test_names_that_a_policy_does_not_grant_fail_alone(needs_tool, tmp_path):
    grants = "".join(f"grant dkim name {name} TXT; " for name in (NAMES[1], NAMES[3]))
    zone = tmp_path / "example.zone"
    zone.write_text(ZONE)
    policy = f"update-policy {{ {grants} }}"
    with serving("named", zone, tmp_path, needs_tool, updates=policy) as server:
        failed = errors(open_target(server.port).apply("example.com", list(map(new, NAMES))))
        assert {name for name, error in failed.items() if error is None} == {NAMES[1], NAMES[3]}
        assert {type(error) for error in failed.values()} == {DnsRefused, type(None)}
        assert [server.ask(name) for name in NAMES[:2]] == [[], [KEY.encode()]]


def test_updates_need_no_key_where_the_server_allows_the_address(needs_tool, tmp_path):
    zone = tmp_path / "example.zone"
    zone.write_text(ZONE)
    policy = "allow-update { 127.0.0.1; }"
    with serving("named", zone, tmp_path, needs_tool, updates=policy) as server:
        target = open_target(server.port, key="")
        assert publish(target, {NAMES[0]: KEY}) == {NAMES[0]: None}
        assert server.ask(NAMES[0]) == [KEY.encode()]


def test_names_that_changed_since_they_were_read_fail_alone(serve, program):
    server = serve(program, OLD)
    target, other = open_target(server.port), open_target(server.port)
    names = [*NAMES, "kept.example.com"]
    states = target.read("example.com", names)
    changes = [change(name, KEY, states[name]) for name in names[:4]]
    late = [change(NAMES[0], "of another program"), change(NAMES[1], "too", states[NAMES[1]])]
    assert set(errors(other.apply("example.com", late)).values()) == {None}
    failed = errors(target.apply("example.com", changes))
    assert [type(failed[name]) for name in NAMES[:4]] == [NegativeAnswer] * 2 + [type(None)] * 2
    assert "has changed" in str(failed[NAMES[0]])
    assert [server.ask(name) for name in NAMES[:4]] == [
        [b"of another program"], [b"too"], [KEY.encode()], [KEY.encode()],
    ]  # fmt: skip


def test_an_alias_at_the_name_is_never_replaced(serve, program):
    server = serve(program)
    alias = "s1._domainkey.alias.example.com"
    failed = errors(
        open_target(server.port).apply("example.com", [change(alias, KEY), change(NAMES[0], KEY)])
    )
    assert isinstance(failed[alias], NegativeAnswer)
    assert failed[NAMES[0]] is None
    assert [str(one) for one in server.ask(alias, "CNAME")] == ["key.example.net."]


@pytest.mark.parametrize("program", ["named", "knotd"])
def test_a_name_below_a_dname_is_told_from_an_alias(serve, program):
    server = serve(program, "_domainkey.moved DNAME dkim.example.net.\n")
    name = "s1._domainkey.moved.example.com"
    state = open_target(server.port).read("example.com", [name])[name]
    assert (state.alias, state.redirected) == (
        "s1.dkim.example.net",
        "_domainkey.moved.example.com",
    )


def test_an_unsigned_update_that_is_refused_may_lack_the_key(serve):
    target = open_target(serve("named").port, key="")
    [error] = errors(target.apply("example.com", [new(NAMES[0])])).values()
    assert isinstance(error, DnsRefused)
    assert "set `key_file`" in error.hint


def test_records_in_other_strings_than_ours_are_replaced_and_removed(serve, program):
    server = serve(program, 's1._domainkey.d0 TXT "a" "" "b"\ns1._domainkey.d1 TXT "\\255\\200"\n')
    target = open_target(server.port)
    assert publish(target, {NAMES[0]: KEY, NAMES[1]: None}) == {NAMES[0]: None, NAMES[1]: None}
    assert [server.ask(name) for name in NAMES[:2]] == [[KEY.encode()], []]


WILDCARDS = """
*.text 60 TXT "v=spf1 -all" "second"
*.text 60 TXT "another"
*.alias2 CNAME elsewhere.example.net.
*._domainkey.revoked TXT "v=DKIM1; p="
"""


def test_what_a_wildcard_has_is_not_at_the_name(serve, program):
    server = serve(program, WILDCARDS)
    names = [f"s1._domainkey.{zone}.example.com" for zone in ("text", "alias2", "revoked")]
    target = open_target(server.port)
    assert target.find_zones(names) == dict.fromkeys(names, "example.com")
    assert target.read("example.com", names) == dict.fromkeys(names, NameState())
    assert publish(target, dict.fromkeys(names, KEY)) == dict.fromkeys(names)
    assert [server.ask(name) for name in names] == [[KEY.encode()]] * 3
    assert publish(target, dict.fromkeys(names)) == dict.fromkeys(names)
    assert server.ask(names[2]) == [b"v=DKIM1; p="]


KINDS = ("A", "AAAA", "MX", "TXT", "CNAME", "HTTPS")


def answers_of(server: Server) -> dict[tuple[str, str], list[str]]:
    """What mail and the web get at these domains, and below them."""
    domains = [f"{domain}.example.com" for domain in (*WHOLE, *SHADOWED, "a", "new", "text.new")]
    names = [f"{prefix}{domain}" for domain in domains for prefix in ("", "www.", "_dmarc.")]
    return {
        (name, kind): sorted(map(str, server.ask(name, kind))) for name in names for kind in KINDS
    }


def test_what_a_new_key_would_take_from_a_wildcard_is_known_and_kept_by_the_named_records(
    serve, program
):
    server = serve(program, WILD)
    target = open_target(server.port)
    of_domain = {f"s1._domainkey.{domain}.example.com": domain for domain in (*WHOLE, *SHADOWED)}
    shadowed = target.find_shadowed("example.com", [*of_domain, "s1._domainkey.example.com"])
    assert {of_domain[name] for name in shadowed} == {*SHADOWED}
    assert shadowed["s1._domainkey.shop.example.com"] == tuple(
        f"{name}. 300 IN {text}" for name in ("shop.example.com", "*.shop.example.com")
        for text in ("A 192.0.2.1", "A 192.0.2.2", "MX 10 mail.example.net.",
                     r'TXT "v=spf1 \" ; \\ \226 -all" "second"')
    )  # fmt: skip
    before = answers_of(server)
    assert before["shop.example.com", "MX"] == ["10 mail.example.net."]
    harmless = [name for name in of_domain if name not in shadowed and ".sub." not in name]
    assert publish(target, dict.fromkeys(harmless, KEY)) == dict.fromkeys(harmless)
    assert answers_of(server) == before
    update = dns.update.Update("example.com", keyring=dns.tsig.Key("dkim", SECRET))
    added = "\n".join(line for lines in shadowed.values() for line in lines)
    for rrset in dns.zonefile.read_rrsets(added, rdclass=None):
        update.add(rrset.name, rrset)
    assert dns.query.tcp(update, server.host, port=server.port).rcode() == 0
    assert answers_of(server) == before
    assert target.find_shadowed("example.com", list(shadowed)) == {}
    assert publish(target, dict.fromkeys(shadowed, KEY)) == dict.fromkeys(shadowed)
    assert answers_of(server) == before


LUA = """
*.named LUA A "createForward()"
*.random LUA A "pickrandom({'192.0.2.1', '192.0.2.2', '192.0.2.3'})"
own.random A 192.0.2.1
"""


def test_a_wildcard_whose_data_powerdns_makes_for_each_name_is_one(serve):
    server = serve("pdns_server", LUA, more="enable-lua-records=yes\n")
    domains = ("192-0-2-9.named", "new.random", "own.random")
    names = [f"s1._domainkey.{domain}.example.com" for domain in domains]
    for _ in range(5):
        shadowed = open_target(server.port).find_shadowed("example.com", names)
        assert list(shadowed) == names[:2]
    assert shadowed[names[0]][0] == "192-0-2-9.named.example.com. 60 IN A 192.0.2.9"


@pytest.mark.parametrize("sizes", [[4096] * 60, [30] * 1500, [*range(30, 4096, 50)]])
def test_many_and_long_values_take_several_messages(serve, program, sizes):
    server = serve(program)
    target = open_target(server.port)
    wanted = {
        f"s{number}._domainkey.example.com": f"v=DKIM1; n={number}; p=".ljust(size, "A")
        for number, size in enumerate(sizes)
    }
    assert publish(target, wanted) == dict.fromkeys(wanted)
    states = target.read("example.com", list(wanted))
    assert {name: state.values for name, state in states.items()} == {
        name: (value,) for name, value in wanted.items()
    }
    assert publish(target, dict.fromkeys(wanted)) == dict.fromkeys(wanted)
    assert set(target.read("example.com", list(wanted)).values()) == {NameState()}


def test_one_changed_name_among_many_fails_alone(serve, program):
    server = serve(program)
    target = open_target(server.port)
    names = [f"s{number}._domainkey.example.com" for number in range(300)]
    assert publish(target, {names[177]: "changed"}) == {names[177]: None}
    failed = errors(target.apply("example.com", list(map(new, names))))
    assert [name for name, error in failed.items() if error] == [names[177]]
    assert server.ask(names[299]) == [KEY.encode()]


def test_a_server_that_is_killed_meanwhile_has_each_name_old_or_new(needs_tool, tmp_path):
    zone = tmp_path / "example.zone"
    zone.write_text(ZONE)
    names = [f"s{number}._domainkey.example.com" for number in range(300)]
    with serving("named", zone, tmp_path, needs_tool) as server:
        applied = open_target(server.port).apply("example.com", list(map(new, names)))
        done = {next(applied).fqdn for _ in range(120)}
        os.kill(server.pid, signal.SIGKILL)
        failed = errors(applied)
    assert ServiceError in {type(error) for error in failed.values()}
    done |= {name for name, error in failed.items() if error is None}
    with serving("named", zone, tmp_path, needs_tool) as server:
        target = open_target(server.port)
        states = target.read("example.com", names)
        assert {state.values for state in states.values()} <= {(), (KEY,)}
        assert all(states[name].values == (KEY,) for name in done)
        assert set(publish(target, dict.fromkeys(names, KEY)).values()) <= {None}


@pytest.fixture(scope="module")
def updated_named(needs_tool, tmp_path_factory):
    with serving_updates("named", tmp_path_factory.mktemp("named"), needs_tool) as server:
        yield server


PRINTABLE = st.characters(min_codepoint=0x20, max_codepoint=0x7E)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values=st.lists(st.text(PRINTABLE, min_size=1, max_size=4096), min_size=1, max_size=3))
def test_any_value_of_printable_characters_arrives_as_it_is(updated_named, values):
    target = open_target(updated_named.port)
    for value in [*values, None]:
        assert set(publish(target, {NAMES[4]: value}).values()) <= {None}
        expected = () if value is None else (value,)
        assert target.read("example.com", NAMES[4:])[NAMES[4]].values == expected
        asked = updated_named.ask(NAMES[4])
        assert asked == [one.encode() for one in expected]


POLICY = """
function updatepolicy(input)
  return input:getQName():toString():find(".d1.", 1, true) == nil
end
"""


def test_what_a_policy_script_drops_is_refused(serve, tmp_path):
    (tmp_path / "policy.lua").write_text(POLICY)
    more = f"lua-dnsupdate-policy-script={tmp_path / 'policy.lua'}\n"
    target = open_target(serve("pdns_server", more=more).port, timeouts=UpdateTimeouts(change=0.1))
    failed = publish(target, dict.fromkeys(NAMES, KEY))
    assert {name: type(error) for name, error in failed.items()} == {
        name: DnsRefused if name == NAMES[1] else type(None) for name in NAMES
    }
    assert (
        "accepted a change of the zone example.com, but did not make it" in failed[NAMES[1]].message
    )


@pytest.mark.parametrize("notifies", [True, False])
def test_what_a_secondary_server_forwards_is_done_when_it_is_visible_there(
    needs_tool, tmp_path, notifies
):
    zone, home, port = tmp_path / "example.zone", tmp_path / "secondary", free_port()
    zone.write_text(ZONE)
    home.mkdir()
    notify = f"notify explicit; also-notify {{ 127.0.0.1 port {port}; }}; notify-delay 0;"
    options = notify if notifies else "notify no;"
    with serving("named", zone, tmp_path, needs_tool, options=options) as primary:
        kind = (
            f"type secondary; primaries {{ 127.0.0.1 port {primary.port}; }}; "
            "allow-update-forwarding { any; }"
        )
        words = server_command(
            "named", {"example.com": home / "copy"}, home, needs_tool, addresses=["127.0.0.1"],
            port=port, kind=kind, options="notify no;",
        )  # fmt: skip
        with running(words, home / "named.log", port):
            target = open_target(port, timeouts=UpdateTimeouts(change=10 if notifies else 0.5))
            error = publish(target, {NAMES[0]: KEY})[NAMES[0]]
            again = publish(target, {NAMES[0]: KEY})
        assert primary.ask(NAMES[0]) == [KEY.encode()]
    if notifies:
        assert (error, again) == (None, {})
    else:
        assert isinstance(error, ServiceError)
        assert "which is not visible there yet" in error.message
        assert isinstance(again[NAMES[0]], ServiceError)
        assert f"still has the old record at {NAMES[0]}" in again[NAMES[0]].message


def test_what_becomes_visible_while_it_looks_is_not_called_dropped():
    """A server that forwards updates gets new data between two questions."""

    class Forwarder(Rfc2136Target):
        visible = 2

        def update(self, message, zone):
            return 0

        def read_again(self, zone, changes):
            time.sleep(0.2)  # past the time for a change
            states = dict.fromkeys((each.fqdn for each in changes), NameState())
            states |= {each.fqdn: NameState((KEY,)) for each in changes[: self.visible]}
            self.visible = len(NAMES)
            return states

    target = Forwarder("test", Address("192.0.2.1", 53), 60, timeouts=UpdateTimeouts(change=0.1))
    done = errors(target.apply("example.com", list(map(new, NAMES))))
    assert done == dict.fromkeys(NAMES)


def test_one_name_of_a_hundred_that_a_policy_script_drops_is_reported(cli, tmp_path, needs_tool):
    (tmp_path / "policy.lua").write_text(POLICY.replace(".d1.", ".d42."))
    more = f"lua-dnsupdate-policy-script={tmp_path / 'policy.lua'}\n"
    with serving_updates("pdns_server", tmp_path / "pdns", needs_tool, more=more) as server:
        target = f"server: '{server}', key_file: tsig.key, profiles: [sandbox]"
        cli.write("config.yaml", f"dns: [{{provider: rfc2136, {target}}}]\n")
        key_file(cli.home / "tsig.key").chmod(0o600)
        domains = (f"d{number}.example.com" for number in range(100))
        register(cli, *domains, key_len=1024, more="start_date: 2036-01-01T00:00+00:00")
        done = cli("publish", "--yes", "--sandbox", "--config", "config.yaml")
        visible = sum(bool(server.ask(f"s1._domainkey.d{n}.example.com")) for n in range(100))
    assert (done.status, visible) == (3, 99)
    assert "created in DNS 99, failed in DNS 1" in done.err
    assert "s1._domainkey.d42.example.com: the DNS server" in done.err
