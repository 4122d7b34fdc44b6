"""The units and the cron line of docs/timers.md, and its example of a notice."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from aging import let_pass
from dkimctl.models import Alarm
from dkimctl.notices import KeyProblem, Notice, notice_document
from documents import PAGES, blocks, example, unit
from lives import PRIMARY
from ports import free_port

PAGE = PAGES["timers.md"]
SERVICE, TIMER = re.findall(r"^```ini\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PROGRAM = "/opt/dkimctl/bin/dkimctl"
SCRIPT = "/usr/local/sbin/dkimctl"
AS_USER = "/usr/sbin/runuser -u dkimctl -- "
BY_HAND = "check-dns --quiet --notify"
CRON = {"HOME": "/root", "PATH": "/usr/bin:/bin"}  # as cron gives it to root
TARGET = """
dns: [{{provider: rfc2136, server: {server}, key_file: tsig.key, profiles: [sandbox]}}]
"""
NOW = datetime(2027, 1, 5, 6, 17, 12, tzinfo=UTC)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX system")


@pytest.fixture
def units(tmp_path):
    """The two units as files, with a program that is there."""
    paths = [tmp_path / f"dkimctl-rotate-default.{kind}" for kind in ("service", "timer")]
    paths[0].write_text(SERVICE.replace(PROGRAM, "/bin/true"))
    paths[1].write_text(TIMER)
    return paths


@pytest.fixture
def inbox(cli, tmp_path):
    """Configure a program that keeps its last document, at a place that others cannot change."""
    inbox = tmp_path / "inbox.json"
    script = tmp_path / "page"
    script.write_text(f"#!/bin/sh\ncat > {inbox}\n")
    script.chmod(0o755)
    cli.write("config.yaml", f"notify: {{command: [{script}], recheck: 1s}}\n")
    cli.write("secrets.env", "HOOK_URL='https://hooks.example.com/x?a=1&b=$2'\n")
    done = cli(
        "register", "--sandbox", "-", stdin="- {sign_domain: example.com, selector: s1}\n",
        env=environment_of_service(cli),
    )  # fmt: skip
    assert done.status == 0, done.err
    return inbox


def moved(text: str, cli) -> str:
    """What the page has for the whole machine: with our program, and our home for directories."""
    for directory in ("/etc/dkimctl", "/var/lib/dkimctl"):
        text = text.replace(directory, str(cli.home))
    return text.replace(PROGRAM, shlex.join([sys.executable, "-m", "dkimctl"]))


def environment_of_service(cli) -> dict[str, str]:
    """The variables that systemd gives the service."""
    service = unit(SERVICE)["Service"]
    assert service["EnvironmentFile"] == "/etc/dkimctl/secrets.env"
    files = shlex.split((cli.home / "secrets.env").read_text())
    given = moved(service["Environment"], cli).split()
    environment = dict(pair.split("=", 1) for pair in [*files, *given])
    return {"HOME": environment["DKIMCTL_STATE_DIR"], "PATH": "/usr/bin:/bin"} | environment


@pytest.fixture
def operator(cli, life):
    """Someone with a DNS server, the sandbox, and the files of the page in the directory `home`."""
    key_file = cli.home / "tsig.key"
    key_file.write_text(life.network.key_file.read_text())
    key_file.chmod(0o600)
    cli.write("config.yaml", TARGET.format(server=PRIMARY))
    cli.write("secrets.env", "DKIMCTL_PROFILE='sandbox'\nUNUSED='a&b;$(exit 1)'\n")
    script = moved(example("runuser -u dkimctl --"), cli)
    assert AS_USER in script
    cli.write("dkimctl.sh", script.replace(AS_USER, ""))
    (cli.home / "dkimctl.sh").chmod(0o755)
    return Operator(cli, life)


class Operator:
    """Runs commands of the page in the network, as systemd and cron run them."""

    def __init__(self, cli, life) -> None:
        self.life = life
        self.home = cli.home
        self.service_environment = environment_of_service(cli)
        self.exec_start = moved(unit(SERVICE)["Service"]["ExecStart"], cli)
        [cron] = re.findall(r"^17 \*/6 \* \* \*  root  (.*)$", PAGE, re.MULTILINE)
        self.cron_line = cron.replace(SCRIPT, str(cli.home / "dkimctl.sh"))

    def run(self, *words: str, environment=CRON, stdin: str = ""):
        done = subprocess.run(
            [*self.life.network.prefix(self.home), *words],
            env=environment, input=stdin, capture_output=True, text=True,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def published(self) -> int:
        """How many keys of a.example.com the DNS server has."""
        done = self.life.network.run(
            "dig", f"@{PRIMARY}", "example.com", "AXFR", "+noall", "+answer"
        )
        return done.stdout.count("._domainkey.a.example.com.")


@pytest.mark.slow
def test_keys_are_rotated_by_the_service_and_the_cron_line(operator):
    """The user that the page adds, and the sandbox of the unit, are not there."""
    script = str(operator.home / "dkimctl.sh")
    specs = "- {sign_domain: a.example.com, selector: s1, key_len: 2048}\n"
    done = operator.run(script, "register", "--publish", "-", stdin=specs)
    assert (done[0], operator.published()) == (0, 1), done
    let_pass(operator.home, days=173)
    service = shlex.split(operator.exec_start)
    status, out, _ = operator.run(*service, environment=operator.service_environment)
    assert (status, operator.published()) == (0, 2), out
    assert "register" in out
    assert operator.run("/bin/sh", "-c", operator.cron_line) == (0, "", "")


def test_systemd_accepts_the_units(units, needs_tool):
    words = [needs_tool("systemd-analyze"), "verify", "--man=no", *units]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_systemd_understands_when_the_timer_runs(needs_tool):
    calendar = unit(TIMER)["Timer"]["OnCalendar"]
    words = [needs_tool("systemd-analyze"), "calendar", "--iterations=5", calendar]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"TZ": "UTC"})
    assert done.returncode == 0, done.stderr
    hours = re.findall(r"(\d\d):00:00 UTC", done.stdout)
    assert set(hours) == {"00", "06", "12", "18"}


def test_who_rotates_by_hand_is_told_by_the_service(cli, inbox):
    assert f"`{BY_HAND}`" in PAGE
    command = unit(SERVICE)["Service"]["ExecStart"].replace("rotate run --quiet", BY_HAND)
    nobody = f"--sandbox --server 127.0.0.1:{free_port()}"
    words = shlex.split(f"{moved(command, cli)} {nobody}")
    done = subprocess.run(words, env=environment_of_service(cli), capture_output=True)
    assert done.returncode == 4, done.stderr  # no name server answers
    [problem] = json.loads(inbox.read_text())["new"]
    assert (problem["subject"], problem["problem"]) == ("example.com s1", "no answer")


def test_the_config_of_the_page_is_valid(cli):
    cli.write("config.yaml", example("recheck: 1m", "yaml"))
    done = cli("status", "--sandbox", "--config", "config.yaml")
    assert done.status == 0, done.err


def test_the_example_of_a_notice_has_the_fields_of_a_real_one():
    [shown] = [json.loads(block) for block in blocks("json") if '"still"' in block]
    problem = KeyProblem("example.com s2027", "signing starts soon: missing")
    alarm = Alarm(*problem[:2], NOW, NOW)
    notice = Notice(new=[(problem, alarm)], over=[alarm])
    real = json.loads(notice_document(notice, profile="default", now=NOW))
    assert list(shown) == list(real)
    assert shown["new"][0].keys() == real["new"][0].keys()
    assert shown["over"][0].keys() == real["over"][0].keys()
    assert shown["version"] == real["version"]
    assert shown["time"] == real["time"]
