"""`dkimctl doctor` in real situations: each thing that is wrong is said, and nothing else is."""

from __future__ import annotations

import re
import signal
import sys
import time

import pytest

from dated import FAKETIME
from delegation import Host, Zone
from dkimctl.dns.verdicts import Verdict
from dkimctl.ledger.ledger import Ledger
from dkimctl.settings.values import SANDBOX_FIXED
from dns_servers import SECRET, WRONG_SECRET, key_file, serving
from network import running
from ports import free_port
from published import APEX, register

ONLINE = {"auth URL", "base URL", "clock", "token", "resolver", "IPv6", "DNS targets",
          "DMARC reports"}  # fmt: skip
TARGET = """
dns: [{{provider: rfc2136, server: "{server}", zones: [example.com], key_file: tsig.key,
       profiles: [sandbox]}}]
"""


@pytest.fixture
def doctor(cli):
    """Run it; gives the exit code, and the state of each check: the worst of its findings."""
    states = ["ok", "note", "not checked", "warning", "unknown", "wrong"]

    def doctor(*words, env=None):
        done = cli("doctor", "--format", "json", *words, env=env)
        assert done.json["count"] == len(done.json["items"])
        found = {}
        for item in done.json["items"]:
            if item["state"] in ("wrong", "warning"):
                assert item["hint"], item
            worst = max(found.get(item["check"], "ok"), item["state"], key=states.index)
            found[item["check"]] = worst
        assert done.status == (1 if "wrong" in found.values() else 0)
        doctor.said = {
            check: "\n".join(f"{one['message']}; {one['hint']}" for one in done.json["items"]
                             if one["check"] == check)
            for check in found
        }  # fmt: skip
        doctor.done = done
        return found

    return doctor


def is_fine(found, *checks) -> bool:
    return {found[check] for check in checks} == {"ok"}


def test_all_is_well_after_a_login(doctor, cli, login, account):
    assert login(account).status == 0
    found = doctor()
    assert is_fine(found, "libraries", "config file", "profile", "auth URL", "base URL", "clock",
                   "credentials", "token", "ledger", "DNS targets", "keys")  # fmt: skip
    assert account["DKIMCTL_CLIENT_SECRET"] not in doctor.done.out + doctor.done.err
    token = cli("token").out.strip()
    assert token not in doctor.done.out
    offline = doctor("--offline")
    assert {check for check, state in offline.items() if state == "not checked"} == ONLINE


def test_with_nothing_set_up_it_names_the_way_in(doctor):
    found = doctor("--offline")
    assert found["profile"] == "wrong"
    assert "dkimctl login" in doctor.said["profile"]
    for check in ("credentials", "ledger", "timer"):
        assert found[check] == "not checked"
        assert doctor.said[check].startswith("it depends on: profile")


def test_the_sandbox_needs_no_account(doctor, cli):
    register(cli, "example.com")
    found = doctor("--sandbox", "--offline")
    assert is_fine(found, "embedded service", "profile", "ledger")
    assert found["keys"] == "ok", "the key is a standby"
    register(cli, "example.net", more="enable: true")
    assert doctor("--sandbox", "--offline")["keys"] == "wrong", "it signs, and was never in DNS"
    assert "urgent: 1 key (example.net" in doctor.said["keys"]
    assert {"auth URL", "clock", "credentials", "token"}.isdisjoint(found)


def test_a_wrong_secret(doctor, account):
    found = doctor(env=account | {"DKIMCTL_CLIENT_SECRET": "not-the-secret"})
    assert is_fine(found, "auth URL", "base URL", "credentials")
    assert found["token"] == "wrong"
    assert "refused the client ID or secret" in doctor.said["token"]
    assert "not-the-secret" not in doctor.done.out + doctor.done.err


def test_nothing_listens_there(doctor, account):
    url = f"http://127.0.0.1:{free_port()}"
    found = doctor(env=account | {"DKIMCTL_BASE_URL": url})
    assert (found["auth URL"], found["base URL"], found["clock"]) == ("ok", "wrong", "not checked")
    assert "refused" in doctor.said["base URL"]
    assert found["token"] == "wrong"
    found = doctor(env=account | {"DKIMCTL_AUTH_URL": url})
    assert (found["auth URL"], found["base URL"], found["token"]) == ("wrong", "ok", "not checked")


def test_another_server_is_not_the_service(doctor, scripted_account, scripted_server, make_answer):
    scripted_server.registering = make_answer(200, b"<!DOCTYPE html><p>Welcome")
    found = doctor(env=scripted_account)
    assert found["base URL"] == "warning"
    assert "200 with a web page" in doctor.said["base URL"]


@pytest.mark.parametrize(
    ("offset", "state", "says"),
    [("+10m", "wrong", "ahead of"), ("-10m", "wrong", "behind"), ("+2m", "note", "ahead of")],
)
def test_a_clock_that_differs(doctor, cli, account, needs_tool, offset, state, says):
    cli.prefix = [needs_tool("faketime"), "-f", offset]
    cli.environment |= FAKETIME
    found = doctor(env=account)
    assert found["clock"] == state
    assert says in doctor.said["clock"]


@pytest.mark.parametrize("pages", [None, 1])
def test_a_damaged_ledger_is_said_and_stays(doctor, cli, pages):
    """All pages but the first, or only the last one."""
    register(cli, *(f"d{number}.example.com" for number in range(40)), key_len=1024)
    ledger = next(cli.home.rglob("ledger.db"))
    cli("ledger", "import", "--sandbox", "-", stdin="{}")  # merges the log
    data = ledger.read_bytes()
    begin = 4096 if pages is None else len(data) - pages * 4096
    ledger.write_bytes(data[:begin] + b"\xff" * (len(data) - begin))
    for side in ledger.parent.glob("ledger.db-*"):
        side.unlink()
    before = ledger.read_bytes()
    found = doctor("--sandbox", "--offline")
    assert found["ledger"] == "wrong"
    assert "is damaged" in doctor.said["ledger"]
    assert found["timer"] == "not checked"
    assert ledger.read_bytes() == before
    assert not list(ledger.parent.glob("*damaged*"))


def test_each_mistake_in_the_config_file_is_a_finding(doctor, cli):
    cli.write("config.yaml", "profiles: {default: {timeout: soon}}\nrotatoin: {}\n")
    found = doctor("--config", "config.yaml", "--offline")
    assert (found["config file"], found["profile"]) == ("wrong", "not checked")
    assert "config.yaml:1:" in doctor.said["config file"]
    assert "config.yaml:2:1:" in doctor.said["config file"]
    assert found["python"] in ("ok", "note")
    assert doctor("--config", "no.yaml", "--offline")["config file"] == "wrong"


def test_who_is_told_of_problems(doctor, cli):
    for notify, state in [
        ("{command: [no-such-program]}", "wrong"), ("{command: [sh]}", "ok"),
        ("{webhook: env/HOOK}", "wrong"), ("{webhook: 'https://hooks.example/x'}", "ok"),
    ]:  # fmt: skip
        cli.write("config.yaml", f"notify: {notify}\n")
        found = doctor("--sandbox", "--offline", "--config", "config.yaml")
        assert found["notices"] == state, notify
    env = {"HOOK": "https://hooks.example/token-in-it"}
    cli.write("config.yaml", "notify: {webhook: env/HOOK}\n")
    found = doctor("--sandbox", "--offline", "--config", "config.yaml", env=env)
    assert found["notices"] == "ok"
    assert "token-in-it" not in doctor.done.out


def test_a_dns_target_with_the_right_and_with_a_wrong_key(doctor, cli, tmp_path, needs_tool):
    zone = tmp_path / "example.zone"
    zone.write_text(APEX)
    register(cli, "mail.example.com", more="enable: true, start_date: 2036-01-01T00:00+00:00")
    words = ("--sandbox", "--config", "config.yaml")
    with serving("named", zone, tmp_path, needs_tool) as server:
        cli.write("config.yaml", TARGET.format(server=server))
        key_file(cli.home / "tsig.key", SECRET).chmod(0o600)
        assert doctor(*words)["DNS targets"] == "ok"
        assert "can be read and written" in doctor.said["DNS targets"]
        assert server.ask("s1._domainkey.mail.example.com") == []
        key_file(cli.home / "tsig.key", WRONG_SECRET).chmod(0o600)
        assert doctor(*words)["DNS targets"] == "wrong"
        assert "secret" in doctor.said["DNS targets"]
    assert doctor(*words)["DNS targets"] == "wrong"
    assert SECRET not in doctor.done.out


def test_where_dmarc_reports_go(cli, account, needs_tool, tmp_path):
    """Of keys that sign; the service is not reachable in that network, which changes nothing."""
    specs = "domains: [{sign_domain: a.test, enable: true}, {sign_domain: b.test, enable: true},\n"
    specs += "  {sign_domain: standby.test, enable: false}]\n"
    assert cli("register", "-", stdin=specs, env=account).status == 0
    record = '_dmarc TXT "v=DMARC1; rua=mailto:dmarc@b.test"\n'
    zones = [
        Zone("a.test", ("ns.test",), record),
        Zone("b.test", ("ns.test",), "@ MX 10 mx\nmx A 192.0.2.1\na.test._report._dmarc TXT x\n"),
    ]
    hosts = [Host("ns.test", ("127.0.0.2",))]
    with running(tmp_path, needs_tool, hosts=hosts, zones=zones) as network:
        done = network.inside(cli)("doctor", "--format", "json", env=account)
    found = {item["message"].partition(":")[0]: item for item in done.json["items"]
             if item["check"] == "DMARC reports"}  # fmt: skip
    assert {text: item["state"] for text, item in found.items()} == {
        "looked at 2 of 2 domains": "ok",
        "reports about 1 domain (a.test) do not reach dmarc@b.test": "warning",
        "no rua": "note",
    }
    assert (
        '`"v=DMARC1"` at a.test._report._dmarc.b.test'
        in found["reports about 1 domain (a.test) do not reach dmarc@b.test"]["hint"]
    )


def test_a_timer_that_does_not_run(doctor, cli, needs_tool):
    register(cli, "example.com", more="enable: true")
    account = {name: SANDBOX_FIXED[name] for name in ("base_url", "client_id")}
    with Ledger.open(next(cli.home.rglob("ledger.db")), **account) as ledger:
        ledger.note_looks({one.key: Verdict.PUBLISHED for one in ledger.ours()})
    words = ("--sandbox", "--offline", "--config", "config.yaml")
    cli.write("config.yaml", TARGET.format(server="127.0.0.1"))
    assert doctor(*words)["timer"] == "note"
    cli.prefix = [needs_tool("faketime"), "-f", "+200d"]
    cli.environment |= FAKETIME
    assert doctor(*words)["timer"] == "wrong"
    assert "`dkimctl timer --sandbox" in doctor.said["timer"]
    assert doctor("--sandbox", "--offline")["timer"] == "wrong"


def test_a_service_that_never_answers_is_not_waited_for(doctor, scripted_account, scripted_server):
    scripted_server.answer = lambda request: time.sleep(3)
    begun = time.monotonic()
    found = doctor("--timeout", "1s", env=scripted_account)
    assert time.monotonic() - begun < 30
    assert (found["auth URL"], found["base URL"]) == ("wrong", "wrong")


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT for one process")
def test_it_can_be_interrupted(cli, scripted_account, scripted_server):
    scripted_server.answer = lambda request: time.sleep(5)
    environment = cli.environment | scripted_account
    with cli.start("doctor", env=environment, stdout=-1, stderr=-1) as process:
        while not scripted_server.requests:
            time.sleep(0.05)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - begun < 4
    assert process.returncode == 130
    assert b"nothing was changed" in err


def test_without_the_service_extra(doctor, cli):
    cli.at_start("import sys; sys.modules['falcon'] = None\n")
    assert doctor("--sandbox", "--offline")["embedded service"] == "wrong"
    assert "pip install '.[service]'" in doctor.said["embedded service"]
    assert "pip install '.[service]'" in cli("--sandbox").out
    assert "pip install '.[service]'" in cli().out


def test_the_lines_fit_the_terminal_and_quiet_shows_what_is_wrong(cli):
    done = cli("doctor", "--sandbox", "--offline", env={"COLUMNS": "80"})
    for line in done.out.splitlines():
        assert re.match(r"[A-Za-z6 ]{16}  [a-z ]{11}  \S|  \S+/", line), line
        assert len(line) <= 80 or "/" in line  # a path
    assert re.search(r"dkimctl: ok \d+", done.err)
    assert cli("doctor", "--sandbox", "--offline", "--quiet").out == ""
