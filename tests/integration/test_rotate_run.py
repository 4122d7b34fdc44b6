"""`rotate run` with real servers: signed updates, delegations, and the embedded service."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import dkim
import pytest

from aging import let_pass
from damaged_mail import MAIL
from dated import FAKETIME
from dkimctl.ledger.account_lock import account_lock
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import key_of
from dkimctl.settings.values import SANDBOX_FIXED
from documents import example
from ledgers import require_events_agree
from lives import PRIMARY
from published import private_keys

A = "a.example.com"
RUN = ("rotate", "run")
SPECS = "defaults: {{key_len: 2048}}\ndomains:\n{}"
CONFIG = """
dns:
- provider: rfc2136
  server: {server}
  key_file: {key_file}
  profiles: [sandbox]
"""


class Owner:
    """Someone with domains in the sandbox, in the network of `life`."""

    def __init__(self, cli, life) -> None:
        self.cli = life.network.inside(cli)
        self.cli.environment = cli.environment | {"DKIMCTL_PROFILE": "sandbox"}
        self.life = life
        self.configure()

    def configure(self, server: str = PRIMARY, key_file: object = None) -> None:
        path = self.cli.home / "tsig.key"
        path.write_text((key_file or self.life.network.key_file).read_text())
        path.chmod(0o600)
        config = CONFIG.format(server=server, key_file=path)
        (self.cli.home / "config.yaml").write_text(config)
        self.cli.environment["DKIMCTL_CONFIG"] = str(self.cli.home / "config.yaml")

    def listen(self) -> Path:
        """Have a program append each notice to the file that is returned."""
        program, told = self.cli.home / "page", self.cli.home / "told.txt"
        program.write_text(f"#!/bin/sh\ncat >> {told}\n")
        program.chmod(0o755)
        with (self.cli.home / "config.yaml").open("a") as config:
            config.write(f"notify: {{command: [{program}], recheck: 1s}}\n")
        return told

    def register(self, *domains: str) -> None:
        entries = "".join(f"- {{sign_domain: {domain}, selector: s1}}\n" for domain in domains)
        done = self.cli("register", "-", stdin=SPECS.format(entries))
        assert done.status == 0, done

    def run(self, *words: str, status: int = 0):
        done = self.cli(*RUN, "--wait", "3s", "--format", "json", *words)
        assert done.status == status, f"{done.out}\n{done.err}"
        return [(one["selector"], one["step"], one["state"]) for one in done.json["items"]]

    def pass_time(self, **delta: float) -> None:
        let_pass(self.cli.home, **delta)

    def in_dns(self, selector: str, domain: str = A) -> bool:
        return bool(self.life.values(key_of(domain, selector)))

    def ledger(self) -> list[str]:
        items = self.cli("show-dns", "--format", "json").json["items"]
        return [f"{one['selector']} {one['sign_domain']}" for one in items]


@pytest.fixture
def owner(cli, life):
    cli.prefix = life.network.prefix(cli.home)  # of `shell`, too
    return Owner(cli, life)


@pytest.fixture
def due(owner):
    """The owner of a key that is published, and due for a successor."""
    owner.register(A)
    assert owner.run() == [("s1", "publish", "done")]
    owner.pass_time(days=173)
    return owner


def successor_of(steps):
    """The selector that a run has registered."""
    [selector] = {selector for selector, step, _ in steps if step == "register"}
    return selector


def test_a_key_from_its_registration_to_its_removal(due):
    steps = due.run()
    new = successor_of(steps)
    assert steps == [(new, "register", "done"), (new, "publish", "done")]
    assert due.in_dns("s1")
    assert due.in_dns(new)
    due.pass_time(days=7, minutes=2)
    assert due.run() == []
    due.pass_time(days=13)
    assert due.run() == []
    due.pass_time(days=1)
    assert due.run("--dry-run", status=1) == [("s1", "remove", "due")]
    assert due.run() == [("s1", "remove", "done")]
    assert not due.in_dns("s1")
    assert due.ledger() == [f"{new} {A}"]
    assert due.run() == []
    with (due.cli.home / "config.yaml").open("a") as config:
        config.write("rotation: [{domains: [b.example.com], limit: 60}, {max_age: 200d}]\n")
    due.run()
    events = [
        (one["selector"], one["what"], one["detail"].partition(" (")[0], one["command"])
        for one in due.cli("history", "--format", "json").json["items"]
    ]
    assert events == [
        ("s1", "registered", "", "register"),
        ("", "policy changed", "the defaults", "rotate run"),
        ("s1", "published", PRIMARY, "rotate run"),
        ("s1", "seen", "published", "rotate run"),
        (new, "registered", "replaces s1", "rotate run"),
        (new, "published", PRIMARY, "rotate run"),
        (new, "seen", "published", "rotate run"),
        ("s1", "seen", "missing", "rotate run"),
        ("s1", "removed", f"replaced by {new}", "rotate run"),
        ("", "policy changed", "b.example.com: 180 d; *: 200 d", "rotate run"),
    ]


@pytest.fixture
def removed(due):
    """The owner of a key that a successor has replaced, and whose record was removed yesterday."""
    for delta in ({"minutes": 0}, {"days": 7, "minutes": 2}, {"days": 14}):
        due.pass_time(**delta)
        due.run()
    assert not due.in_dns("s1")
    due.pass_time(days=1)
    return due


def signed_by(owner, selector, **days) -> bytes:
    """A mail that dkimpy has signed with a key of the sandbox, so many days ago."""
    key, ago = private_keys(owner.cli.home)[A, selector], timedelta(**days).total_seconds()
    clock = SimpleNamespace(time=lambda: time.time() - ago)
    with mock.patch.object(dkim, "time", clock):
        return dkim.sign(MAIL, selector.encode(), A.encode(), key) + MAIL


def urgent(owner) -> set[str]:
    """Which views show that s1 is urgent."""
    views = ("list", "--format", "json"), ("overview", "--format", "json"), ()
    found = {words[:1]: owner.cli(*words).out for words in views}
    items = json.loads(found["list",])["items"]
    shown = {"list" for item in items if (item["selector"], item["urgency"]) == ("s1", "signing")}
    shown |= {"overview" for _ in json.loads(found["overview",])["urgent"]}
    return shown | {"dkimctl" for _ in re.findall("URGENT", found[()])}


def test_a_removed_key_that_has_signed_mail_is_urgent_and_is_put_back(removed):
    run, mail = removed.cli, signed_by(removed, "s1")
    for other in (signed_by(removed, "s1", days=16), mail.replace(b"Verify", b"Forge")):
        done = run("verify", "-", stdin=other)  # kept since its grace period began, and forged
        assert (done.status, "removed key" in done.err, urgent(removed)) == (1, False, set())
    done = run("verify", "--format", "json", "-", stdin=mail)
    [signature] = done.json["items"][0]["signatures"]
    assert (done.status, signature["verdict"], signature["stage"]) == (1, "fail", "removed")
    assert signature["notes"][-1] == "it is valid with the removed key, which signs mail again"
    [warning] = json.loads(done.err)["warnings"]
    assert warning["hint"].startswith(f"put its record back: `dkimctl publish --sandbox {A}`, then")
    assert urgent(removed) == {"list", "overview", "dkimctl"}

    (removed.cli.home / "config.yaml").write_text("")  # no target for now
    told = removed.listen()
    assert removed.run(status=1) == [("s1", "publish", "by hand")]
    [item] = json.loads(told.read_text())["new"]
    assert (item["subject"], item["problem"]) == (f"{A} s1", "signing now without DNS: missing")
    removed.configure()
    assert run("publish", "--yes", "--wait", "5s").status == 0
    done = run("verify", "--format", "json", "-", stdin=mail)
    assert (done.status, done.json["items"][0]["verdict"], urgent(removed)) == (0, "pass", set())
    removed.pass_time(days=13)
    assert (removed.run(), removed.in_dns("s1")) == ([], True)
    removed.pass_time(days=1, minutes=1)
    assert removed.run() == [("s1", "remove", "done")]


def test_a_removed_key_that_the_service_answers_for(removed):
    """As long as its successor signs, it stays removed; then it is urgent, and put back."""
    run, [new] = removed.cli, [name.split()[0] for name in removed.ledger()]
    [store] = run.home.rglob("sandbox.db")
    entry = SPECS.format(f"- {{sign_domain: {A}, selector: s1}}\n")  # the file still has it
    for words in (("--dry-run",), ()):
        done = run("register", "-", "--format", "table", *words, stdin=entry)
        assert done.status == 0, done
        assert f"replaced by {new}; its record was removed on" in " ".join(done.out.split())
        assert "warning" not in done.err
        assert "publish" not in done.err
    assert removed.run() == []
    assert run("register", "--refresh", "-", stdin=entry).status == 0
    assert urgent(removed) == set()
    assert f"{A} (selector s1)" in run("publish", "--dry-run").err, "left out"
    assert removed.run() == [("s1", "remove", "done")]
    assert run("service", "registration", "disable", A, new, "--data", store).status == 0
    entries = f"- {{sign_domain: {A}, selector: {new}}}\n- {{sign_domain: {A}, selector: s1}}\n"
    done = run("register", "--refresh", "-", stdin=SPECS.format(entries))
    assert (done.status, urgent(removed)) == (0, {"list", "overview", "dkimctl"}), done
    assert run("publish", "--yes", "--wait", "5s").status == 0
    for _ in range(3):
        removed.run(status=1)  # the successor is disabled
        removed.pass_time(days=9)
        assert removed.in_dns("s1")


def test_a_server_without_the_record_keeps_the_entry_open(owner):
    """Of two servers, one never gets the changes of the other."""
    domain = "a.example.org"
    owner.register(domain)
    done = owner.cli(*RUN, "--wait", "1s", "--format", "json")
    assert done.status == 1, "it signs, and a server lacks its record"
    [item] = done.json["items"]
    assert (item["state"], item["urgency"]) == ("waiting", "partly")
    assert owner.life.backup([key_of(domain, "s1")])["s1._domainkey.a.example.org"]


def test_a_wrong_key_is_refused_and_told(due, tmp_path):
    wrong = tmp_path / "wrong.key"
    wrong.write_text(due.life.network.key_file.read_text().replace('"dkim"', '"other"'))
    due.configure(key_file=wrong)
    done = due.cli(*RUN, "--format", "json")
    assert done.status == 3
    failed = [(one["step"], one["state"]) for one in done.json["items"]]
    assert failed == [("register", "failed"), ("publish", "failed")], "also the one in DNS"
    due.configure()
    assert [one[1:] for one in due.run()] == [("register", "done"), ("publish", "done")]


def test_without_the_key_file_it_registers_nothing_and_ends_with_two(due):
    due.cli.home.joinpath("tsig.key").rename(due.cli.home / "elsewhere")
    done = due.cli(*RUN, "--wait", "0s")
    assert done.status == 2, done
    assert "no such TSIG key file" in done.out
    assert str(due.cli.home / "config.yaml") in done.out
    due.cli.home.joinpath("elsewhere").rename(due.cli.home / "tsig.key")
    assert [one[1:] for one in due.run()] == [("register", "done"), ("publish", "done")]


def test_a_server_that_is_down_delays_successors(due):
    with due.life.down("ns1.test"):
        steps = due.run(status=4)
        new = successor_of(steps)
        assert steps == [(new, "register", "failed"), ("s1", "publish", "failed")]
        assert due.ledger() == [f"s1 {A}"]
    steps = due.run()
    new = successor_of(steps)
    assert steps == [(new, "register", "done"), (new, "publish", "done")]
    due.life.update(f"update delete {new}._domainkey.{A}. TXT\nsend\n", at=[PRIMARY])
    due.cli("check-dns")
    with due.life.down("ns1.test"):
        assert (new, "publish", "failed") in due.run(status=4)
        due.pass_time(days=4)
        assert (new, "publish", "failed") in due.run(status=1), "half of the lead is over: urgent"
    assert due.run() == [(new, "publish", "done")]


def test_a_server_that_refuses_our_time_gets_no_successors(due, needs_tool):
    """From five minutes on (RFC 8945, 10), which the service, on the same clock, does not see."""
    due.pass_time(hours=1)
    due.cli.prefix = [*due.cli.prefix, needs_tool("faketime"), "-f", "-30m"]
    due.cli.environment |= FAKETIME
    done = due.cli(*RUN, "--wait", "0s")
    assert done.status == 3
    assert "not registered, since it could not be published" in done.out
    ahead = r"its clock is (29 min 59 s|30 min( 1 s)?) ahead of ours \(BADTIME\)"
    assert re.search(ahead, done.out)
    assert due.ledger() == [f"s1 {A}"]


def test_a_server_that_is_down_is_one_row_of_many_keys_and_one_item_of_a_notice(owner):
    told = owner.listen()
    owner.register(*(f"{name}.example.com" for name in "abcde"), "a.b.example.com")
    with owner.life.down("ns1.test"):
        done = owner.cli(*RUN, "--wait", "0s")
    assert done.status == 1
    assert re.findall(r"^[^ ].*", done.out, re.MULTILINE)[1:] == [
        "6 keys  -         publish  failed, URGENT"
    ]
    [item] = json.loads(told.read_text())["new"]
    assert (item["count"], len(item["subjects"])) == (6, 6)


def test_a_dry_run_does_not_wait_for_what_it_does_not_do(owner):
    owner.register(A)
    began = time.monotonic()
    done = owner.cli(*RUN, "--dry-run", "--wait", "60s")
    assert (done.status, "publish  due" in done.out) == (1, True)
    assert time.monotonic() - began < 30
    owner.run()
    with owner.life.down("ns1.test"):
        assert owner.cli(*RUN, "--dry-run", "--format", "json").json["not_asked"] == 1
        done = owner.cli(*RUN, "--dry-run")
    assert (done.status, done.out) == (0, "")
    told = " ".join(done.err.split())
    assert "DNS was not asked about 1 key that the last look saw published" in told
    assert told.endswith("nothing is known to be due")


def test_without_a_target_it_works_by_hand(due):
    (due.cli.home / "config.yaml").write_text("{}\n")
    done = due.cli(*RUN)
    assert done.status == 0
    assert "add the TXT record" in done.out
    assert "to publish by hand what no target covers: `dkimctl show-dns " in done.err
    script = due.cli("show-dns", "--format", "nsupdate").out
    due.life.update(script, at=[PRIMARY])
    assert due.run() == []
    due.pass_time(days=22)
    done = due.cli(*RUN)
    assert "remove the TXT record s1._domainkey.a.example.com" in done.out
    due.life.update(due.cli("rotate", "--retired", "--format", "nsupdate").out, at=[PRIMARY])
    assert due.run() == [("s1", "remove", "done")]


def test_a_notice_tells_of_records_to_be_removed_by_hand(due):
    due.run()
    (due.cli.home / "config.yaml").write_text("")  # no target from now on
    told = due.listen()
    due.pass_time(days=22)
    assert due.run() == [("s1", "remove", "by hand")]
    assert due.run() == [("s1", "remove", "by hand")], "told once"
    [item] = json.loads(told.read_text())["new"]
    with due.life.down("ns1.test"):
        assert ("s1", "remove", "waiting") in due.run(status=4)
    assert '"rotation of' not in json.dumps(json.loads(told.read_text().splitlines()[1])["over"])
    command = f"dkimctl rotate --sandbox {A} --retired"
    assert item["action"] == f"remove the record of s1: `{command}`"
    due.life.update(due.cli("rotate", "--retired", "--format", "nsupdate").out, at=[PRIMARY])
    assert due.run() == [("s1", "remove", "done")]
    over = json.loads(told.read_text().splitlines()[-1])["over"]
    assert f"rotation of {A}" == item["subject"] in [one["subject"] for one in over]


def test_a_second_run_waits_and_says_so(due):
    [ledger] = due.cli.home.rglob("ledger.db")
    account = {name: SANDBOX_FIXED[name] for name in ("base_url", "client_id")}
    with account_lock(ledger.parent, **account, on_wait=pytest.fail, purpose="rotate"):
        process = due.cli.start(*RUN, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert b"waiting for another rotate run of this account" in process.stderr.readline()
        assert len(due.ledger()) == 1
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(due.ledger()) == 2


def test_runs_that_are_killed_end_as_others_do(owner):
    """A kill at random moments, until a run comes to its end; a day later the same again."""
    rng = random.Random(17)
    domains = [f"{name}.example.com" for name in "abcdef"]
    owner.register(*domains)
    [path] = owner.cli.home.rglob("ledger.db")
    account = {name: SANDBOX_FIXED[name] for name in ("base_url", "client_id")}
    for days in (173, 8, 15):
        owner.pass_time(days=days)
        for _ in range(4):
            process = owner.cli.start(*RUN, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(rng.uniform(0.3, 1.5))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            with Ledger.open_existing(path, **account) as ledger:
                require_events_agree(ledger)
        owner.run()
    assert owner.run() == []
    keys = owner.ledger()
    assert len(keys) == len(domains)
    assert not any(key.startswith("s1 ") for key in keys)
    assert all(owner.in_dns(*key.split()) for key in keys)
    assert not any(owner.in_dns("s1", domain) for domain in domains)


@pytest.mark.parametrize("seconds", [0.4, 0.9])
def test_ctrl_c_ends_a_run_and_the_next_goes_on(due, seconds):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = due.cli.start(*RUN, "--wait", "60s", **options)
    time.sleep(seconds)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode in (0, 130, -signal.SIGTERM), error
    assert b"Traceback" not in error
    due.run()
    assert due.run() == []
    assert len(due.ledger()) == 2


def test_ctrl_c_before_the_second_look_tells_what_was_done(due):
    with (due.cli.home / "config.yaml").open("a") as config:
        config.write("notify: {command: /bin/true, recheck: 10m}\n")
    foreign = "update add s1._domainkey.b.example.com. 60 TXT hello\nsend\n"
    due.life.update(foreign, at=[PRIMARY])
    due.register("b.example.com")
    process = due.cli.start(*RUN, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b"before a notice" not in (line := process.stderr.readline()):
        assert line
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(rb"s\d{8} +register +done", out)
    assert b"the same command continues where this one stopped" in error


def test_a_ledger_that_cannot_be_written(due):
    [path] = due.cli.home.rglob("ledger.db")
    data = path.read_bytes()
    path.write_bytes(b"damaged" * 999)
    done = due.cli(*RUN)
    assert (done.status, done.out) == (2, "")
    assert "is damaged" in done.err
    path.write_bytes(data)


def test_the_way_of_the_docs(due, shell):
    config = example("rotation: {max_age", "yaml").replace("192.0.2.1", PRIMARY)
    config = config.replace("    key_file", "    profiles: [sandbox]\n    key_file")
    (due.cli.home / "config.yaml").write_text(config)
    with pytest.raises(AssertionError, match=r"register *due"):
        shell(example("rotate run --dry-run"), due.cli.environment)
    assert due.ledger() == [f"s1 {A}"]
    done = shell(example("rotate run --quiet"), due.cli.environment)
    assert "register" in done.stdout
    assert len(due.ledger()) == 2
    assert shell(example("rotate run --quiet"), due.cli.environment).stdout == ""


def test_no_problem_is_over_while_dns_cannot_be_asked(owner):
    owner.register(A)
    (owner.cli.home / "config.yaml").write_text("")  # no target
    told = owner.listen()
    owner.run(status=1)
    with owner.life.network.without_nameservers():
        owner.run(status=4)
    owner.run(status=1)
    missing, unknown, known = map(json.loads, told.read_text().splitlines())
    assert [one["subject"] for one in missing["new"]] == [f"{A} s1"]
    assert [one["subject"] for one in unknown["new"]] == ["rotate run"]
    assert unknown["over"] == []
    assert [one["subject"] for one in known["over"]] == ["rotate run"]
    assert known["new"] == []


def test_nothing_registered(owner):
    done = owner.cli(*RUN)
    assert (done.status, done.out) == (1, "")
    assert "nothing is registered" in done.err


@pytest.mark.parametrize("covered", [True, False])
def test_a_record_behind_an_alias_is_published_and_removed_where_it_leads(owner, covered):
    end, own = f"key.{'example.com' if covered else 'example.org'}", f"s1._domainkey.{A}"
    path = owner.cli.home / "config.yaml"
    path.write_text(path.read_text().replace("- provider", "- zones: [example.com]\n  provider"))
    owner.life.update(f"update add {own}. 60 CNAME {end}.\nsend\n", at=[PRIMARY])
    try:
        owner.register(A)
        if not covered:
            [item] = owner.cli(*RUN, "--format", "json", "--wait", "0s").json["items"]
            assert item["state"] == "blocked"
            assert f"publish the record at {end}" in item["reason"]
            (item,) = owner.cli("show-dns", "--format", "json").json["items"]
            value = item["setting_values"]["value"]
            text = f'"{value[:255]}" "{value[255:]}"'
            owner.life.update(f"update add {end}. 60 TXT {text}\nsend\n")
        assert owner.run() == [("s1", "publish", "done")] * covered
        owner.pass_time(days=173)
        owner.run()
        owner.pass_time(days=22)
        if not covered:
            done = owner.cli(*RUN)
            assert f"remove the TXT record {end}" in done.out
            path.write_text("")
            done = owner.cli(*RUN)
            assert f"remove the TXT record {end}" in done.out, "also without any target"
            owner.life.update(f"update delete {end}. TXT\nsend\n")
        assert owner.run() == [("s1", "remove", "done")]
        answer = owner.life.network.run("dig", "+short", end, "TXT", own, "CNAME").stdout
        assert answer == f"{end}.\n", "the key is gone, and the alias stays"
        assert owner.run() == []
    finally:
        owner.life.update(f"update delete {own}. CNAME\nsend\n", at=[PRIMARY])
        owner.life.update(f"zone {end[4:]}.\nupdate delete {end}. TXT\nsend\n", at=[PRIMARY])
