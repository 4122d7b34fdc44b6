"""check-dns --notify: told once when a problem begins, and once when it is over."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import subprocess

import dns.query
import dns.rcode
import dns.tsigkeyring
import dns.update
import pytest

import hostile
from dns_servers import SECRET, Server, serving
from documents import example
from ports import free_port
from processes import LIMIT
from published import APEX, looks, name_of, published, register, txt

OK = [hostile.whole(b"ok")]


class Zone:
    """example.com at a real named, which takes updates."""

    def __init__(self, server: Server, values: dict[str, str]) -> None:
        self.server = server
        self._values = values

    def publish(self, *domains: str) -> None:
        """Have the records of these domains alone."""
        keyring = dns.tsigkeyring.from_text({"dkim": SECRET})
        update = dns.update.UpdateMessage("example.com", keyring=keyring)
        for domain, value in self._values.items():
            update.delete(f"{name_of(domain)}.", "TXT")
            if domain in domains:
                update.add(f"{name_of(domain)}.", 60, "TXT", txt("x", value).split("TXT ", 1)[1])
        answer = dns.query.tcp(update, self.server.host, port=self.server.port, timeout=10)
        assert answer.rcode() == dns.rcode.NOERROR


@pytest.fixture
def zone(cli, tmp_path, needs_tool):
    """A named with the records of a.example.com and b.example.com."""
    values = register(cli, "a.example.com", "b.example.com", more="enable: true")
    path = tmp_path / "example.com.zone"
    path.write_text(APEX + published(values))
    with serving("named", path, tmp_path, needs_tool) as server:
        yield Zone(server, values)


@pytest.fixture
def inbox(cli, tmp_path):
    """Configure a program that keeps each document it gets."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    script = tmp_path / "page"

    class Inbox:
        def configure(self, more: str = "", recheck: str = "1s") -> None:
            notify = f"command: [{script}, x y], recheck: {recheck}{more}"
            cli.write("c.yaml", f"notify: {{{notify}}}\n")

        def succeed(self) -> None:
            script.write_text(f'#!/bin/sh\ncat > "$(mktemp -p {folder})"\n')
            script.chmod(0o755)

        def fail(self) -> None:
            script.write_text("#!/bin/sh\nexit 3\n")

        def take(self) -> list[dict]:
            """The documents since the last call."""
            documents = []
            for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns):
                documents.append(json.loads(path.read_text()))
                path.unlink()
            return documents

    inbox = Inbox()
    inbox.succeed()
    inbox.configure()
    return inbox


@pytest.fixture
def check(cli, zone):
    """Run check-dns --notify at that named."""

    def run(*words: object, env=None):
        options = ("--sandbox", "--config", "c.yaml", "--server", zone.server)
        return cli("check-dns", "--notify", *options, *words, env=env)

    return run


@pytest.fixture
def start_check(cli, zone):
    """Start check-dns --notify at that named."""
    words = ("--notify", "--sandbox", "--config", "c.yaml", "--server", zone.server)
    return lambda **options: cli.start("check-dns", *words, stdout=subprocess.DEVNULL, **options)


def subjects(items: list[dict]) -> list[str]:
    return [subject for item in items for subject in item["subjects"]]


def test_a_problem_is_told_once_and_its_end_once(check, zone, inbox):
    assert check().status == 0
    assert inbox.take() == []

    zone.publish("b.example.com")
    done = check()
    assert done.status == 1
    assert "1 new problem: checking again in 1 s, before a notice" in done.err
    [told] = inbox.take()
    assert told["counts"] == {"new": 1, "over": 0, "still": 0}
    [new] = told["new"]
    assert new["subject"] == "a.example.com s1"
    assert new["problem"] == "signing now without DNS: missing"
    assert new["urgency"] == "signing"
    assert "--sandbox" in new["action"]
    assert told["version"] == 1
    assert told["profile"] == "sandbox"

    for _ in range(2):  # while it lasts
        assert check().status == 1
    assert inbox.take() == []

    zone.publish()
    assert check().status == 1
    [worse] = inbox.take()
    assert subjects(worse["new"]) == ["b.example.com s1"]
    assert subjects(worse["still"]) == ["a.example.com s1"]
    assert worse["still"][0]["since"] == new["since"]

    zone.publish("a.example.com", "b.example.com")
    assert check().status == 0
    [better] = inbox.take()
    assert subjects(better["over"]) == ["a.example.com s1", "b.example.com s1"]
    assert better["over"][0]["since"] == new["since"]
    assert better["text"].startswith("dkimctl: 2 problems over: a.example.com s1 ")
    assert check().status == 0
    assert inbox.take() == []


def test_a_problem_that_the_second_look_does_not_see_is_not_told(cli, start_check, zone, inbox):
    inbox.configure(recheck="4s")
    zone.publish("b.example.com")
    with start_check(stderr=subprocess.PIPE) as process:
        assert b"checking again in 4 s" in read_until(process, b"before a notice")
        zone.publish("a.example.com", "b.example.com")
        assert process.wait(LIMIT) == 1  # what it showed
    assert inbox.take() == []
    assert looks(cli.home) == {}  # --server is not recorded


def test_ctrl_c_before_the_second_look(check, start_check, zone, inbox):
    inbox.configure(recheck="10m")
    zone.publish("b.example.com")
    with start_check(stderr=subprocess.PIPE) as process:
        read_until(process, b"before a notice")
        process.send_signal(signal.SIGINT)
        shown = process.stderr.read()
        assert process.wait(LIMIT) == 130
    assert b"Traceback" not in shown
    inbox.configure()
    check()
    assert [subjects(one["new"]) for one in inbox.take()] == [["a.example.com s1"]]


def read_until(process: subprocess.Popen[bytes], text: bytes) -> bytes:
    said = b""
    while text not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


def test_without_an_answer_no_problem_is_over(check, cli, zone, inbox):
    zone.publish("b.example.com")
    check()
    inbox.take()
    dead = f"127.0.0.1:{free_port()}"
    done = cli("check-dns", "--notify", "--sandbox", "--config", "c.yaml", "--server", dead)
    assert done.status == 4
    [told] = inbox.take()
    assert told["counts"] == {"new": 2, "over": 0, "still": 0}
    assert {item["problem"] for item in told["new"]} == {"no answer"}
    assert check().status == 1
    [answered] = inbox.take()
    assert answered["counts"] == {"new": 0, "over": 2, "still": 1}


def test_a_test_notice_leaves_no_alarm(cli, inbox):
    inbox.configure()
    inbox.succeed()
    done = cli(*shlex.split(example("--test-notice"))[1:], "--config", "c.yaml")
    assert (done.status, done.err) == (0, "dkimctl: the test notice was delivered\n")
    [document] = inbox.take()
    [told], [over] = document["new"], document["over"]
    assert (told["subject"], told["problem"]) == ("dkimctl", "test notice")
    assert (over["subject"], over["problem"]) == ("dkimctl", "test notice")
    assert not list(cli.home.rglob("ledger.db"))


@pytest.mark.parametrize(
    ("words", "status", "what"),
    [
        ((), 4, "failed with exit status 3"),
        (("--notify",), 2, "--test-notice checks nothing"),
        (("example.com",), 2, "--test-notice checks nothing"),
        (("--config", "none.yaml"), 2, "--test-notice needs notify in the config file"),
    ],
)
def test_a_test_notice_that_cannot_be_sent(cli, inbox, words, status, what):
    inbox.configure()
    inbox.fail()
    cli.write("none.yaml", "{}\n")
    done = cli("--config", "c.yaml", "check-dns", "--test-notice", *words)
    assert done.status == status
    assert what in done.err


def test_a_notice_that_failed_is_sent_by_the_next_run(check, zone, inbox):
    inbox.configure(', webhook: "https://127.0.0.1:1/t0psecret?t=t0psecret"')
    zone.publish("b.example.com")
    inbox.fail()
    done = check("-v")
    assert done.status == 1  # what DNS has is worse
    assert '/page" failed with exit status 3' in done.err
    assert "the webhook failed: cannot reach https://127.0.0.1:1: " in done.err
    assert "t0psecret" not in done.err
    zone.publish("a.example.com")  # now the other one is missing; nobody was told of the first
    inbox.succeed()
    done = check()
    assert done.status == 1
    assert "a notice was not delivered: the webhook failed" in done.err
    [told] = inbox.take()
    assert told["counts"] == {"new": 1, "over": 0, "still": 0}
    assert subjects(told["new"]) == ["b.example.com s1"]
    inbox.fail()
    zone.publish("a.example.com", "b.example.com")
    done = check("--format", "json")
    assert done.status == 4  # nothing is wrong but this
    assert {one["code"] for one in json.loads(done.err)["warnings"]} == {"notice"}
    inbox.configure()
    inbox.succeed()
    assert check().status == 0
    assert [subjects(one["over"]) for one in inbox.take()] == [["b.example.com s1"]]


def test_runs_at_once_tell_once(start_check, zone, inbox):
    zone.publish("b.example.com")
    runs = [start_check() for _ in range(3)]
    assert [run.wait(LIMIT) for run in runs] == [1, 1, 1]
    assert len(inbox.take()) == 1


def test_an_alarm_of_a_key_that_is_forgotten_is_over(cli, check, zone, inbox):
    zone.publish("b.example.com")
    check()
    inbox.take()
    done = cli("ledger", "forget", "--sandbox", "a.example.com", "--force", "--still-published")
    assert done.status == 0, done.err
    assert check("b.example.com").status == 0
    assert [subjects(one["over"]) for one in inbox.take()] == [["a.example.com s1"]]


def test_the_program_does_not_get_the_secrets_of_the_config_file(check, cli, zone, tmp_path):
    script = tmp_path / "page"
    script.write_text(f"#!/bin/sh\nenv > {tmp_path}/env\n")
    script.chmod(0o755)
    dns = "{provider: octodns, class: a.B, settings: {token: env/DNS_TOKEN}}"
    cli.write("c.yaml", f"notify: {{command: {script}, recheck: 1s}}\ndns: [{dns}]\n")
    zone.publish("b.example.com")
    assert check(env={"DNS_TOKEN": "t0psecret", "PAGER_TOKEN": "its own"}).status == 1
    told = (tmp_path / "env").read_text()
    assert "t0psecret" not in told
    assert "PAGER_TOKEN=its own" in told


@pytest.mark.parametrize(
    ("config", "words", "what"),
    [("{}", (), "--notify needs notify in the config file"),
     ("notify: {command: [/bin/true]}", ("--expect-absent",), "cannot be combined"),
     ("notify: {command: [/bin/true]}", ("--from", "x.json"), "cannot be combined")],
)  # fmt: skip
def test_it_says_what_is_missing_or_cannot_be(cli, config, words, what):
    cli.write("c.yaml", config)
    done = cli("check-dns", "--sandbox", "--config", "c.yaml", "--notify", *words)
    assert done.status == 2
    assert what in done.err
    assert "hint: " in done.err


def test_the_webhook_gets_the_document(check, cli, zone, tmp_path):
    bundle, tls = hostile.make_certificate(tmp_path, "127.0.0.1", days=30)
    cli.write("c.yaml", "notify: {webhook: env/HOOK, recheck: 1s}\n"
              f"profiles: {{sandbox: {{ca_bundle: {bundle}}}}}\n")  # fmt: skip
    zone.publish("b.example.com")
    with contextlib.closing(hostile.HostileServer(lambda request: OK, tls)) as server:
        done = check(env={"HOOK": f"{server.url}/t0psecret?x=1"})
        assert done.status == 1, done.err
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /t0psecret?x=1 HTTP/1.1\r\n")
    assert subjects(json.loads(body)["new"]) == ["a.example.com s1"]
    assert "t0psecret" not in done.err + done.out


@pytest.mark.parametrize("url", ["env/t0psecret", "http://h.example/t0psecret", "t0psecret\n"])
def test_a_variable_that_has_no_url_of_a_webhook_is_named(check, cli, zone, url):
    cli.write("c.yaml", "notify: {webhook: env/HOOK, recheck: 0.1s}\n")
    zone.publish("b.example.com")
    done = check("-v", env={"HOOK": url})
    assert "a notice was not delivered: in env/HOOK: " in done.err
    assert "t0psecret" not in done.err + done.out
