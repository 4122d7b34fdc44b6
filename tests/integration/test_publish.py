"""`publish` with a real name server that takes updates with a TSIG key."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta

import pytest

from dated import DatedCli
from dkimctl.formats.renderer import PublicationFormat
from dns_servers import SECRET, WRONG_SECRET, key_file, serving
from lives import PRIMARY, SERVERS, Life
from ports import free_port
from published import APEX, register
from terminals import is_harmless

CONFIG = """
dns:
  - zones: [example.com]
    provider: rfc2136
    server: {server}
    key_file: tsig.key
    profiles: [sandbox]
"""
SANDBOX = ("--sandbox", "--config", "config.yaml")
HOSTILE = r"\027[2J\027]0;owned\007`` | <img src=x> [x](javascript:1) \"\\ \226\128\174"
KEYS = "enable: true, start_date: 2036-01-01T00:00+00:00"


@pytest.fixture
def zone(tmp_path):
    """The zone file; change it before the server starts."""
    path = tmp_path / "example.zone"
    path.write_text(APEX + 'kept TXT "as it" " was"\ns1._domainkey.alias CNAME key.example.net.\n')
    return path


@pytest.fixture
def server(zone, tmp_path, needs_tool):
    with serving("named", zone, tmp_path, needs_tool) as server:
        yield server


def configure(cli, server, secret=SECRET) -> None:
    cli.write("config.yaml", CONFIG.format(server=server))
    key_file(cli.home / "tsig.key", secret).chmod(0o600)


def publish(cli, *words):
    return cli("publish", *SANDBOX, *words)


def value_of(server, domain) -> list[str]:
    return [value.decode() for value in server.ask(f"s1._domainkey.{domain}")]


def test_plan_apply_and_the_second_plan_is_empty(cli, server):
    configure(cli, server)
    values = register(cli, "example.com", "mail.example.com", more=KEYS)
    plan = publish(cli, "--dry-run", "--format", "json")
    assert plan.status == 1
    assert [item["action"] for item in plan.json["items"]] == ["create", "create"]
    assert value_of(server, "example.com") == []
    done = publish(cli, "--yes")
    assert done.status == 0, done.err
    assert "dkimctl: created in DNS 2\n" in done.err
    assert {domain: value_of(server, domain) for domain in values} == {
        domain: [value] for domain, value in values.items()
    }
    assert server.ask("kept.example.com") == [b"as it was"]
    again = publish(cli, "--dry-run")
    assert (again.status, again.err) == (0, "dkimctl: already in DNS 2\n")


WILD = "* 300 MX 10 mail\n* 300 A 192.0.2.1\nown A 192.0.2.9\n"
SHOP = "shop.example.com"
ADD_FIRST = [
    f"{name}. 300 IN {data}"
    for name in (SHOP, f"*.{SHOP}")
    for data in ("A 192.0.2.1", "MX 10 mail.example.com.")
]


@pytest.fixture
def shop(cli, zone, tmp_path, needs_tool):
    """Domains that a wildcard answers for, and that have their own records; both registered."""
    with zone.open("a") as file:
        file.write(WILD)
    with serving("named", zone, tmp_path, needs_tool) as server:
        configure(cli, server)
        register(cli, SHOP, "own.example.com", "example.com", more=KEYS)
        yield server


def test_a_key_does_not_take_a_website_off_dns(cli, shop):
    plans = {fmt: publish(cli, "--dry-run", "-f", fmt) for fmt in PublicationFormat}
    assert [plan.status for plan in plans.values()] == [1, 1, 1]
    items = {item["sign_domain"]: item for item in plans["json"].json["items"]}
    assert {name: item["action"] for name, item in items.items()} == {
        SHOP: "blocked", "own.example.com": "create", "example.com": "create",
    }  # fmt: skip
    assert items[SHOP]["add_first"] == ADD_FIRST
    assert set(ADD_FIRST) <= set(plans["table"].out.splitlines())
    assert all(f"  {line}\n" in plans["markdown"].out for line in ADD_FIRST)
    done = publish(cli, "--yes")
    assert (done.status, value_of(shop, SHOP)) == (1, [])
    assert "needs them, run `dkimctl publish --sandbox --config" in done.err
    assert [str(data) for data in shop.ask(f"www.{SHOP}", "A")] == ["192.0.2.1"]
    assert value_of(shop, "own.example.com")
    allowed = publish(cli, "--yes", "--allow-wildcard-shadowing")
    assert (allowed.status, shop.ask(SHOP, "A")) == (0, [])
    assert publish(cli, "--dry-run").status == 0
    assert len(value_of(shop, SHOP)) == 1


def test_register_publish_and_rotate_run_name_the_records_to_add_first(cli, shop):
    for words in (
        ("register", *SANDBOX, "--publish", "--wait", "1s", "--domain", SHOP, "-f", "json"),
        ("rotate", "run", *SANDBOX, "--wait", "0s"),
    ):
        done = cli(*words)
        assert done.status == 1, done.err
        assert all(line in " ".join((done.out + done.err).split()) for line in ADD_FIRST)
        assert value_of(shop, SHOP) == []
    cli("rotate", "run", *SANDBOX, "--wait", "0s", "--allow-wildcard-shadowing")
    assert len(value_of(shop, SHOP)) == 1


def test_old_keys_are_replaced_and_other_text_only_if_asked_for(cli, zone, tmp_path, needs_tool):
    with zone.open("a") as file:
        file.write('s1._domainkey.old TXT "v=DKIM1; p=MIIB"\ns1._domainkey.spf TXT "v=spf1 -all"\n')
    values = register(cli, *(f"{name}.example.com" for name in ("old", "spf", "alias")), more=KEYS)
    with serving("named", zone, tmp_path, needs_tool) as server:
        configure(cli, server)
        done = publish(cli, "--yes", "--format", "json")
        items = {item["sign_domain"].partition(".")[0]: item for item in done.json["items"]}
        assert done.status == 1
        assert {name: item["action"] for name, item in items.items()} == {
            "old": "replace", "spf": "blocked", "alias": "blocked",
        }  # fmt: skip
        assert items["old"]["before"] == ["v=DKIM1; p=MIIB"]
        assert "CNAME, to key.example.net" in items["alias"]["reason"]
        assert value_of(server, "old.example.com") == [values["old.example.com"]]
        assert value_of(server, "spf.example.com") == ["v=spf1 -all"]
        forced = publish(cli, "--yes", "--replace", "spf.example.com")
        assert forced.status == 0, forced.err
        assert value_of(server, "spf.example.com") == [values["spf.example.com"]]


def test_hostile_text_in_dns_acts_in_no_format(cli, zone, tmp_path, needs_tool):
    with zone.open("a") as file:
        file.write(f's1._domainkey TXT "{HOSTILE}"\n')
    register(cli, "example.com", more=KEYS)
    with serving("named", zone, tmp_path, needs_tool) as server:
        configure(cli, server)
        for fmt in ("table", "json", "markdown"):
            done = publish(cli, "--dry-run", "--format", fmt)
            assert done.status == 1
            assert "owned" in done.out
            assert all(map(is_harmless, (done.out + done.err).splitlines()))


def test_a_wrong_key_is_refused_and_a_silent_server_gives_no_answer(cli, server):
    configure(cli, server, WRONG_SECRET)
    register(cli, "example.com", more=KEYS)
    refused = publish(cli, "--yes")
    assert refused.status == 3, refused.err
    assert SECRET not in refused.err + refused.out
    assert WRONG_SECRET not in refused.err + refused.out
    configure(cli, f"127.0.0.1:{free_port()}")
    silent = publish(cli, "--yes")
    assert silent.status == 4, silent.err
    assert value_of(server, "example.com") == []


def test_check_access_changes_nothing_also_before_anything_is_registered(cli, server):
    configure(cli, server)
    serial = server.ask("example.com", "SOA")[0].serial
    done = publish(cli, "--check-access")
    assert (done.status, done.out.split()[-3:]) == (0, ["0", "yes", "yes"])
    assert "a policy that refuses or drops others shows only when publishing" in done.err
    assert publish(cli, "--check-access", "--quiet")[:3] == (0, "", "")
    assert publish(cli, "--check-access", "example.com").status == 1
    cli.write("config.yaml", CONFIG.format(server=server).replace("[example.com]", '["*.com"]'))
    unnamed = publish(cli, "--check-access")
    assert (unnamed.status, unnamed.out) == (1, "")
    assert "name a zone in `zones`" in unnamed.err
    configure(cli, server)
    register(cli, "example.com", more=KEYS)
    (item,) = publish(cli, "--check-access", "--format", "json").json["items"]
    assert (item["zone"], item["readable"], item["writable"]) == ("example.com", True, True)
    configure(cli, server, WRONG_SECRET)
    refused = publish(cli, "--check-access")
    assert (refused.status != 0, " no" in refused.out) == (True, True)
    assert "hint: check `key_file`" in refused.err
    assert server.ask("example.com", "SOA")[0].serial == serial


def test_without_a_terminal_it_needs_yes_or_dry_run(cli, server):
    configure(cli, server)
    register(cli, "example.com", more=KEYS)
    done = publish(cli)
    assert done.status == 2
    assert "--yes" in done.err
    assert value_of(server, "example.com") == []


def test_ctrl_c_while_it_waits_for_dns_tells_what_was_changed(cli, server):
    configure(cli, server)
    register(cli, "example.com", more=KEYS)
    words = ("--yes", "--wait", "30m", "--format", "json")
    run = cli.start("publish", *SANDBOX, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not value_of(server, "example.com") and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    os.kill(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert b"the changes were made" in err
    assert [item["applied"] for item in json.loads(out)["items"]] == [True]


@pytest.mark.parametrize(("answer", "status"), [("n", 1), ("y", 0), ("", 1)])
def test_on_a_terminal_it_asks(cli, server, on_terminal, answer, status):
    configure(cli, server)
    register(cli, "example.com", more=KEYS)
    done = on_terminal(["publish", *SANDBOX], [("Make 1 change in DNS? [y/N]:", f"{answer}\r")])
    assert done[0] == status, done
    assert bool(value_of(server, "example.com")) == (status == 0)
    assert ("nothing was changed" in done[1]) == (status == 1)


def test_without_targets_it_says_what_to_write_and_the_way_by_hand(cli):
    register(cli, "example.com", more=KEYS)
    done = cli("publish", "--sandbox", "--yes")
    assert done.status == 2
    assert "no DNS target is configured for the profile sandbox" in done.err
    assert "docs/publish.md" in done.err
    cli.write("config.yaml", CONFIG.replace("[sandbox]", "[other]").format(server="127.0.0.1:1"))
    done = cli("publish", *SANDBOX, "--yes")
    assert done.status == 2
    assert "add sandbox to `profiles` of an entry of `dns`" in done.err
    assert "`dkimctl show-dns --sandbox --config config.yaml --format nsupdate" in done.err


def test_where_targets_are_configured_the_next_step_is_publish(cli, server):
    configure(cli, server)
    cli.write("domains.yaml", "- {sign_domain: example.com, selector: s1, enable: false}\n")
    done = cli("register", *SANDBOX, "domains.yaml")
    assert "`dkimctl publish --sandbox --config config.yaml domains.yaml`" in done.err
    assert "nsupdate" not in done.err


def test_a_selection_that_matches_nothing_is_a_no(cli, server):
    configure(cli, server)
    register(cli, "example.com", more=KEYS)
    done = publish(cli, "--yes", "example.com", "missing.example.com")
    assert done.status == 1
    assert "missing.example.com is not registered" in done.err
    assert value_of(server, "example.com"), "the others are published"
    assert publish(cli, "--yes", "missing.example.com").status == 1


def test_a_zone_that_the_server_does_not_have_is_named(cli, server):
    cli.write("config.yaml", CONFIG.format(server=server).replace("example.com", "example.net"))
    key_file(cli.home / "tsig.key").chmod(0o600)
    register(cli, "example.net", more=KEYS)
    done = publish(cli, "--yes")
    assert done.status == 1
    assert "has no zone example.net" in done.err


def test_disabled_keys_are_left_out(cli, server):
    configure(cli, server)
    register(cli, "example.com", more="enable: false")
    done = publish(cli, "--yes")
    assert (done.status, done.out) == (0, "")
    assert "left out, disabled: 1 (example.com (selector s1))" in done.err


def test_two_at_once_lose_nothing(cli, server):
    configure(cli, server)
    values = register(cli, *(f"d{number}.example.com" for number in range(20)), more=KEYS)
    runs = [
        cli.start("publish", *SANDBOX, "--yes", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for run in runs:
        _, err = run.communicate(timeout=60)
        # What the other run has changed meanwhile is told; nothing else may fail.
        assert run.returncode in (0, 1), err
    assert publish(cli, "--yes").status == 0
    assert {domain: value_of(server, domain) for domain in values} == {
        domain: [value] for domain, value in values.items()
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_at_any_moment_each_name_is_old_or_new(cli, server, number):
    configure(cli, server)
    values = register(cli, *(f"d{n}.example.com" for n in range(300)), key_len=1024, more=KEYS)
    seen = set()
    for delay in (0.1, 0.2, 0.3, 0.5):
        run = cli.start("publish", *SANDBOX, "--yes", stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE)  # fmt: skip
        time.sleep(delay)
        os.kill(run.pid, number)
        _, err = run.communicate(timeout=60)
        assert b"Traceback" not in err
        # Less than 130 or the number: before it has a handler of its own.
        assert run.returncode in {0, 130, -number, -signal.SIGINT}, err
        seen.add(run.returncode)
        for domain, value in values.items():
            assert value_of(server, domain) in ([], [value])
    assert seen != {0}, "it was never stopped"
    assert publish(cli, "--yes").status == 0
    assert publish(cli, "--dry-run").status == 0


def test_ten_thousand_names(cli, server, key_records):
    """More than a terminal or a comment can show, in one zone."""
    configure(cli, server)
    count, value = 10_000, key_records[1024]
    domains = [f"d{number}.example.com" for number in range(count)]
    items = [
        {
            "result": {"code": "201"}, "sign_domain": domain, "selector": "s1", "key_len": 1024,
            "start_date": "2036-01-01T00:00+00:00", "enable": True, "setting_values":
            {"fqdn": f"s1._domainkey.{domain}", "type": "TXT", "value": value},
        }
        for domain in domains
    ]  # fmt: skip
    cli.write("saved.json", json.dumps({"items": items, "count": count, "total": count}))
    assert cli("ledger", "import", "--sandbox", "saved.json").status == 0
    plan = publish(cli, "--dry-run", "--format", "markdown")
    assert len(plan.out) < 65_536
    assert "and 9,980 more: create" in plan.out
    done = publish(cli, "--yes", "--output", "plan.txt")
    assert done.status == 0, done.err
    assert f"created in DNS {count}" in done.err
    assert len((cli.home / "plan.txt").read_text().splitlines()) == count + 2
    assert publish(cli, "--dry-run").status == 0
    assert value_of(server, domains[-1]) == [value]


@pytest.fixture
def keys(cli, hosted):
    """A ledger in a network with delegations, where 127.0.0.2 alone serves example.com."""
    network, commands = hosted
    life = Life(DatedCli(cli.home, commands, datetime.now(UTC).replace(tzinfo=None)), network)
    cli.write("config.yaml", CONFIG.format(server=PRIMARY))
    (cli.home / "tsig.key").write_text(network.key_file.read_text())
    (cli.home / "tsig.key").chmod(0o600)
    life.cli.environment["DKIMCTL_CONFIG"] = str(cli.home / "config.yaml")
    return life


def specs(domain, selector, start, more="") -> str:
    fields = f"key_len: 1024, start_date: {start:%Y-%m-%dT%H:%M+00:00}{more}"
    return f"- {{sign_domain: {domain}, selector: {selector}, {fields}}}\n"


def test_register_publish_tells_what_cannot_be_published(keys):
    later = keys.now + timedelta(days=7)
    entries = specs("part.example.com", "s1", later) + specs("part.example.org", "s1", later)
    done = keys.register(entries, "--publish", status=1)
    assert "in no zone of a DNS target: 1 (part.example.org (selector s1))" in done.err
    assert "created in DNS 1" in done.err
    assert keys.cli("show-dns", "part.example.org").status == 0, "it is registered"


def test_register_publish_needs_targets_before_it_sends_anything(keys):
    keys.cli.write("config.yaml", "")
    later = keys.now + timedelta(days=7)
    done = keys.register(specs("none.example.com", "s1", later), "--publish", status=2)
    assert "no DNS target" in done.err
    assert keys.cli("show-dns", "none.example.com").status == 1, "nothing was sent"


def test_register_publish_registers_nothing_if_a_target_cannot_be_written(
    cli, zone, tmp_path, needs_tool
):
    """And says what is urgent, if a policy refuses some names afterwards."""
    entries = "".join(
        f"- {{sign_domain: {domain}, selector: s1, key_len: 2048}}\n"
        for domain in ("example.com", "mail.example.com", "news.example.com")
    )
    words = ("register", *SANDBOX, "--publish", "--wait", "1s", "-")
    policy = "update-policy { grant dkim wildcard *._domainkey.example.com TXT; };"
    with serving("named", zone, tmp_path, needs_tool, updates=policy[:-1]) as server:
        configure(cli, server, WRONG_SECRET)
        refused = cli(*words, stdin=entries)
        assert (refused.status, refused.out) == (3, "")
        assert "so nothing was registered" in refused.err
        assert "nothing is registered" in cli("list", "--sandbox").err
        configure(cli, server)
        done = cli(*words, stdin=entries)
    assert done.status == 3, done.err
    for domain in ("mail.example.com", "news.example.com"):
        assert f"grant dkim wildcard *._domainkey.{domain} TXT;" in done.err
    *_, last, hint = done.err.splitlines()
    assert "URGENT: signing now without DNS" in last
    assert "2 (mail.example.com (selector s1), news.example.com (selector s1))" in last
    assert "publish --sandbox --config config.yaml mail.example.com news.example.com`" in hint


def test_records_past_their_grace_period_are_left_out(keys):
    present = keys.cli.now
    keys.cli.now = present - timedelta(days=60)
    keys.register(specs("retired.example.com", "s1", keys.now + timedelta(days=1)))
    keys.publish("retired.example.com", at=[PRIMARY])
    keys.cli.now = present - timedelta(days=30)
    start = keys.now + timedelta(days=1)
    keys.register(specs("retired.example.com", "s2", start, ", replaces: s1"))
    keys.publish("retired.example.com", at=[PRIMARY])
    keys.cli("check-dns", "retired.example.com")
    keys.cli.now = present
    plan = keys.cli("publish", "retired.example.com")
    assert plan.status == 2, "not a terminal"
    kept = keys.cli("publish", "--dry-run", "retired.example.com", "--format", "json")
    assert [item["selector"] for item in kept.json["items"]] == ["s2"]


OWN, END = "s1._domainkey.led.example.org", "key.led.example.com"
OTHER_KEY = "v=DKIM1; p=MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK7X"
BEHIND = {  # what is where the alias leads, and what is done there if a target has that zone
    "the key": ("{value}", "keep"), "another key": (OTHER_KEY, "blocked"),
    "nothing": ("", "create"), "other text": ("v=spf1 -all", "blocked"),
}  # fmt: skip


def lead(keys, target):
    alias = f"update delete {OWN}. ANY\nupdate add {OWN}. 60 CNAME {target}.\n"
    keys.update(f"zone example.org.\n{alias}send\n")


def led(keys, zones, content, *, target=END):
    """Register a key whose name is an alias in example.org; returns its value."""
    keys.cli.write("config.yaml", CONFIG.format(server=PRIMARY).replace("example.com", zones))
    keys.register(specs("led.example.org", "s1", keys.now + timedelta(days=7)))
    (item,) = keys.cli("show-dns", "--format", "json").json["items"]
    value = item["setting_values"]["value"]
    lead(keys, target)
    script = f"update delete {END}. ANY\n"
    if content:
        script += f'update add {END}. 60 TXT "{content.format(value=value)}"\n'
    keys.update(f"{script}send\n", at=[PRIMARY])
    return value


def judged(keys):
    (item,) = keys.cli("check-dns", "--format", "json").json["items"]
    return item["verdict"]


@pytest.mark.parametrize("zones", ["example.org", "example.com", "example.org, example.com"])
@pytest.mark.parametrize("behind", BEHIND)
def test_what_an_alias_leads_to_is_judged_as_check_dns_does_and_changed_there(keys, behind, zones):
    content, action = BEHIND[behind]
    value = led(keys, zones, content)
    if "example.com" not in zones and action != "keep":
        action = "blocked"
    is_right = judged(keys) == "published"
    done = keys.cli("publish", "--yes", "--format", "json")
    (change,) = done.json["items"]
    assert (is_right, change["action"]) == (behind == "the key", action)
    values = keys.network.run("dig", f"@{PRIMARY}", "+short", END, "TXT").stdout
    if action == "create":
        assert (done.status, change["alias_end"], change["in_dns"]) == (0, END, "published")
        assert values == f'"{value}"\n'
    else:
        assert (done.status, change["applied"]) == (0 if is_right else 1, False)
        assert content.format(value=value) in values
        assert is_right or END in change["reason"]
        advice = "--replace" if "example.com" in zones else "change records where aliases lead"
        assert is_right or advice in done.err
    for server in SERVERS:
        alias = keys.network.run("dig", f"@{server}", "+short", OWN, "CNAME").stdout
        assert alias == f"{END}.\n"
    assert keys.cli("publish", "--dry-run").status == (action == "blocked")
    assert (judged(keys) == "published") == (action != "blocked")
    if action == "blocked" and "example.com" in zones:
        assert keys.cli("publish", "--yes", "--replace").status == 0
        assert judged(keys) == "published"


@pytest.mark.parametrize("content", ["", OTHER_KEY])
def test_nothing_is_written_where_the_alias_of_a_wildcard_leads(keys, content):
    led(keys, "example.com", content)
    wildcard = "zone example.org.\nupdate {} *.led.example.org. 60 CNAME " + f"{END}.\nsend\n"
    keys.update(f"zone example.org.\nupdate delete {OWN}. CNAME\nsend\n")
    keys.update(wildcard.format("add"))
    try:
        assert judged(keys) == "missing"
        done = keys.cli("publish", "--yes", "--format", "json")
    finally:
        keys.update(wildcard.format("delete").replace(" 60 ", " "))
    (change,) = done.json["items"]
    assert (done.status, change["action"], change["alias_end"]) == (1, "uncovered", "")
    values = keys.network.run("dig", f"@{PRIMARY}", "+short", END, "TXT").stdout
    assert values == (f'"{content}"\n' if content else "")


def test_aliases_in_a_loop_are_blocked_and_a_key_of_another_registration_stays(keys):
    led(keys, "example.com", "", target=OWN)
    assert judged(keys) == "malformed"
    done = keys.cli("publish", "--yes", "--format", "json")
    assert (done.status, done.json["items"][0]["action"]) == (1, "uncovered")
    assert "are a loop" in done.json["items"][0]["reason"]
    other = "s1._domainkey.other.example.com"
    keys.register(specs("other.example.com", "s1", keys.now + timedelta(days=7)))
    assert keys.cli("publish", "--yes", "other.example.com").status == 0
    lead(keys, other)
    done = keys.cli("publish", "--yes", "led.example.org", "--format", "json")
    (change,) = done.json["items"]
    assert (done.status, change["action"]) == (1, "blocked")
    assert "the record of other.example.com (selector s1) is there" in change["reason"]
