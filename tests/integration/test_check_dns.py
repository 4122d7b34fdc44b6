"""check-dns with real name servers, whose zone has every kind of fault."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time

import pytest

from dns_servers import Server, key_file, serving
from ports import free_port
from published import APEX, looks, name_of, published, register, txt

# named listens only on addresses of an interface; the loopback interface has this one.
HOSTS = {"named": "127.0.0.1", "nsd": "127.0.0.2", "knotd": "127.0.0.3"}


@pytest.fixture
def serve(needs_tool, tmp_path):
    """Start a server for example.com with these records."""
    with contextlib.ExitStack() as running:

        def start(program: str, records: str) -> Server:
            directory = tmp_path / program
            directory.mkdir(exist_ok=True)
            zone = directory / "example.com.zone"
            zone.write_text(APEX + records)
            server = serving(program, zone, directory, needs_tool, HOSTS[program])
            return running.enter_context(server)

        yield start


@pytest.fixture
def check(cli):
    """Run check-dns at some servers; returns the ended command and the items by domain."""

    def run(servers, *words: object):
        at = [word for server in servers for word in ("--server", server)]
        done = cli("check-dns", "--sandbox", "--format", "json", *at, *words)
        return done, {item["sign_domain"]: item for item in done.json["items"]}

    return run


FAULTS = {
    "right.example.com": ("published", lambda name, value, other: txt(name, value)),
    "gone.example.com": ("missing", lambda name, value, other: ""),
    "other-key.example.com": ("mismatch", lambda name, value, other: txt(name, other)),
    "testing.example.com": ("differs", lambda name, value, other: txt(name, value + "; t=y")),
    # As DNS panels store it that keep only one character-string.
    "panel.example.com": ("truncated", lambda name, value, other: txt(name, value[:255])),
    "quoted.example.com": ("malformed", lambda name, value, other: txt(name, f'"{value}"')),
    "escaped.example.com": (
        "malformed",
        lambda name, value, other: txt(name, value.replace(";", "\\;")),
    ),
    "binary.example.com": ("malformed", lambda name, value, other: txt(name, b"\xff\x1b[31m")),
    "doubled.example.com": (
        "malformed",
        lambda name, value, other: txt(f"{name}.example.com", value),
    ),
    "twice.example.com": ("duplicate", txt),
    "alias.example.com": (
        "published",
        lambda name, value, other: (
            f"{name}. CNAME key.example.com.\n" + txt("key.example.com", value)
        ),
    ),
    "abroad.example.com": (
        "no answer",
        lambda name, value, other: f"{name}. CNAME key.example.net.\n",
    ),
}


@pytest.fixture
def faulty(cli):
    """Register the domains of FAULTS; returns zone file lines with the fault of each."""
    values = register(cli, *FAULTS)
    other = values["right.example.com"]
    return "".join(
        FAULTS[domain][1](name_of(domain), value, other) for domain, value in values.items()
    )


def test_three_servers_agree_on_every_fault(check, serve, faulty):
    servers = [serve(program, faulty) for program in HOSTS]
    done, items = check(servers)
    assert done.status == 1  # although one alias has no answer
    for domain, (verdict, _) in FAULTS.items():
        item = items[domain]
        assert item["verdict"] == verdict, item
        assert [check["server"] for check in item["servers"]] == [str(one) for one in servers]
        assert {check["verdict"] for check in item["servers"]} == {verdict}, item
    reasons = {domain: item["reason"] for domain, item in items.items()}
    assert reasons["other-key.example.com"].startswith("another key: 2048 bits, SHA-256 ")
    assert "; registered: 2048 bits, SHA-256 " in reasons["other-key.example.com"]
    assert "not as registered: t=; t=y is for testing" in reasons["testing.example.com"]
    assert "quotation marks" in reasons["quoted.example.com"]
    assert "backslashes" in reasons["escaped.example.com"]
    doubled = "s1._domainkey.doubled.example.com.example.com"
    assert doubled in reasons["doubled.example.com"]
    assert "one of them ours" in reasons["twice.example.com"]
    assert items["alias.example.com"]["alias"] == "key.example.com"
    assert items["abroad.example.com"]["alias"] == "key.example.net"
    assert "\x1b" not in done.out


def test_the_exit_code_is_1_where_every_verdict_is_known(check, serve, faulty):
    server = serve("nsd", faulty)
    done, items = check([server], "gone.example.com", "right.example.com")
    assert (done.status, len(items)) == (1, 2)
    done, items = check([server], "right.example.com", "alias.example.com")
    assert (done.status, len(items)) == (0, 2)
    assert json.loads(done.err)["summary"] == {"published": 2}


@pytest.fixture
def two(cli):
    return register(cli, "a.example.com", "b.example.com")


def test_a_lagging_server_is_named_as_such(cli, check, serve):
    values = register(
        cli, "a.example.com", "b.example.com", more="start_date: 2020-01-01T00:00+00:00"
    )
    left = published({"a.example.com": values["a.example.com"]})
    servers = [serve("named", left), serve("nsd", left), serve("knotd", "")]
    done, items = check(servers)
    assert (done.status, items["a.example.com"]["urgency"]) == (1, "partly")
    lagging = f"published at 2 of 3 servers; {servers[2]}: missing"
    assert items["a.example.com"]["reason"] == lagging
    assert items["b.example.com"]["urgency"] == "signing"
    signing, partly = (one["message"] for one in json.loads(done.err)["warnings"])
    assert "signing now without DNS, so receivers cannot verify the mail: 1 (b." in signing
    assert "signing now, but some servers lack it" in partly
    assert ": 1 (a.example.com (selector s1))" in partly


def silent_host() -> Server:
    return Server(free_port("127.0.0.5"), "127.0.0.5")


def test_a_dead_server_means_no_answer_not_missing(check, serve, two):
    server, dead = serve("nsd", published(two)), silent_host()
    done, items = check([server, dead])
    assert done.status == 4
    for item in items.values():
        assert item["verdict"] == "no answer"
        assert "published elsewhere" in item["reason"]
        assert str(dead) in item["reason"]
    # If the others lack it, it is not published, whatever the dead one has.
    done, items = check([serve("knotd", ""), dead])
    assert (done.status, items["a.example.com"]["verdict"]) == (1, "missing")


@pytest.mark.parametrize("program", HOSTS)
def test_a_truncated_answer_is_fetched_over_tcp(check, serve, cli, program):
    values = register(cli, "big.example.com")
    many = [values["big.example.com"], *(f"v=DKIM1; p={number}{'x' * 250}" for number in range(6))]
    done, items = check([serve(program, txt(name_of("big.example.com"), *many))])
    assert done.status == 1
    assert "7 TXT records" in items["big.example.com"]["reason"]


def test_what_has_dkimctl_change_dns_is_named_until_a_target_is_set(cli, serve, account):
    cli.environment |= account
    assert cli("register", "--domain", "example.com").status == 0
    words = ("check-dns", "--server", serve("nsd", ""))
    assert "or let dkimctl change DNS: `dkimctl init --dns PROVIDER`" in cli(*words).err
    cli.write("config.yaml", "{}\n")
    config = "--config", "config.yaml"
    assert "or let dkimctl change DNS: set `dns` in config.yaml\n" in cli(*words, *config).err
    cli.write("config.yaml", "dns: [{provider: rfc2136, server: 127.0.0.1}]\n")
    assert "let dkimctl" not in cli(*words, *config).err


def test_equal_answers_are_counted(cli, serve, on_terminal):
    register(cli, *(f"d{number}.example" for number in range(23)), key_len=1024)
    words = ("check-dns", "--sandbox", "--server", serve("nsd", ""))
    done = cli(*words)
    lines = done.out.splitlines()
    assert done.status == 4
    assert sum(line.startswith("d") for line in lines) == 20
    assert lines[-2].startswith("  … and 3 more: no answer: TXT FQDN: ")
    assert lines[-2].endswith("it answers REFUSED")
    for more in (["--verbose"], ["--format", "table"]):
        whole = cli(*words, *more).out
        assert sum(line.startswith("d") for line in whole.splitlines()) == 23
        assert "more" not in whole
    _, shown = on_terminal([str(word) for word in (*words, "--format", "table")])
    assert "d22.example" in shown


def test_quiet_says_nothing_if_all_is_published(cli, serve, two):
    words = ("check-dns", "--sandbox", "--quiet", "--server")
    done = cli(*words, serve("nsd", published(two)))
    assert (done.status, done.out, done.err) == (0, "", "")
    left = published({"b.example.com": two["b.example.com"]})
    done = cli(*words, serve("knotd", left))
    assert (done.status, done.err) == (1, "")
    assert "a.example.com" in done.out
    assert "b.example.com" not in done.out


def test_what_dns_says_is_escaped_in_the_log(cli, serve, two):
    server = serve("nsd", txt(name_of("a.example.com"), b"\xff\x1b[31m"))
    done = cli("check-dns", "--sandbox", "--verbose", "--server", server)
    assert "\x1b" not in done.err
    assert r"\udcff\x1b[31m" in done.err


def test_the_table_starts_with_domains_signing_without_dns(cli, serve, on_terminal):
    register(cli, "z.example.com", more="start_date: 2020-01-01T00:00+00:00")
    register(cli, "a.example.com", more="start_date: 2099-01-01T00:00+00:00")
    server = serve("nsd", "")
    status, shown = on_terminal(["check-dns", "--sandbox", "--server", str(server)])
    assert status == 1
    lines = shown.splitlines()
    assert "z.example.com" in lines[1]
    assert "SIGNING NOW WITHOUT DNS" in lines[1]
    assert "\x1b[1;31m" in lines[1]
    assert "a.example.com" in lines[2]
    assert any("signing now without DNS" in line and "z.example.com" in line for line in lines[3:])


def test_expect_absent_wants_old_records_gone(cli, check, serve, two):
    left = published({"b.example.com": two["b.example.com"]})
    server = serve("knotd", left)
    done, items = check([server], "--expect-absent")
    assert done.status == 1
    assert items["a.example.com"]["verdict"] == "missing"
    assert items["b.example.com"]["verdict"] == "published"
    assert json.loads(done.err)["summary"] == {"missing": 1, "published": 1}
    text = cli("check-dns", "--sandbox", "--expect-absent", "--server", server).err
    assert text.startswith("dkimctl: still in DNS 1, gone 1\ndkimctl: not recorded, since --server")
    assert check([server], "--expect-absent", "a.example.com")[0].status == 0


def test_a_saved_result_needs_no_ledger(cli, serve, two, tmp_path):
    saved = cli("show-dns", "--sandbox", "--format", "json").out
    server = serve("nsd", published(two))
    elsewhere = {"HOME": str(tmp_path / "elsewhere"), "XDG_DATA_HOME": str(tmp_path / "elsewhere")}
    done = cli("check-dns", "--from", "-", "--server", server, stdin=saved, env=elsewhere)
    assert done.status == 0, done.err
    assert "published 2" in done.err


def test_waiting_ends_within_an_interval_of_the_last_server(cli, serve, two, tmp_path, needs_tool):
    servers = {program: serve(program, "") for program in HOSTS}
    at = [word for server in servers.values() for word in ("--server", str(server))]
    words = ("check-dns", "--sandbox", "--wait", "60s", "--format", "json", *at)
    process = cli.start(*words, stdout=-1, stderr=-1)
    for program, server in servers.items():
        if program == "knotd":
            time.sleep(2.5)  # one round sees only the changes of the others
        if program == "named":  # does not reload a dynamic zone
            script = cli("show-dns", "--sandbox", "--format", "nsupdate").out
            update = f"server {server.host} {server.port}\n{script}"
            key = ["-k", str(key_file(tmp_path / "key"))]
            subprocess.run([needs_tool("nsupdate"), *key], input=update, text=True, check=True)
        else:
            zone = tmp_path / program / "example.com.zone"
            zone.write_text((APEX + published(two)).replace(" 1 3600", " 2 3600"))
            server.reload()
    changed = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    # The intervals grow by half from 2 s on, and a good look is confirmed after 5 s; the slack is
    # for a busy machine.
    assert time.monotonic() - changed < 4.5 + 5 + 10
    assert {item["verdict"] for item in json.loads(out)["items"]} == {"published"}


def test_looks_at_named_servers_are_not_recorded(cli, serve, two):
    server = serve("nsd", published(two))
    assert cli("check-dns", "--sandbox", "--server", server).status == 0
    assert looks(cli.home) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", [(), ("--expect-absent",)])
def test_an_interrupted_wait_does_not_claim_to_be_recorded(cli, serve, two, words, number):
    server = serve("nsd", published(two) if words else "")
    words = ("check-dns", "--sandbox", *words, "--wait", "60s", "--server", server)
    process = cli.start(*words, stdout=-1, stderr=subprocess.PIPE)
    assert b"0 of 2" in process.stderr.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert err.splitlines() == [
        b"dkimctl: error: interrupted",
        b"hint: run the same command to check again",
    ]


def test_an_unwritable_output_is_reported_before_the_wait(cli, two):
    started = time.monotonic()
    words = ("--wait", "30s", "--server", silent_host(), "--output", "nowhere/checks.json")
    done = cli("check-dns", "--sandbox", *words)
    assert (done.status, done.out) == (2, "")
    assert "cannot write nowhere/checks.json" in done.err
    assert time.monotonic() - started < 25
