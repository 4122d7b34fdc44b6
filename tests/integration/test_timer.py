"""`dkimctl timer`: what it installs, that it does so once, and that it leaves what others wrote."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from published import register

pytestmark = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="needs systemd or cron")
# Programs of the system, whose state is in files beside them.
PROGRAMS = {
    "systemctl": """
        echo "$*" >> calls
        case "$*" in
            *is-active*) test -e active ;;
            *" restart "* | restart*) touch active ;;
            *disable*) rm active ;;
        esac
    """,
    "crontab": """
        echo "$*" >> asked
        case "$1" in
            -) cat > new && mv new tab ;;
            *) test ! -e denied || { echo "you are not allowed" >&2; exit 1; }
               test -e tab || { echo "no crontab for me" >&2; exit 1; }
               cat tab ;;
        esac
    """,
    "loginctl": "echo no",
}  # fmt: skip
UNIT = "dkimctl-rotate-sandbox"
MINE = b"MAILTO=me\n# \xff 100 %\n0 0 * * * true\n\n5 5 * * * dkimctl check-dns --quiet"


class System:
    """A machine with systemd and cron; `uid` is the user's."""

    def __init__(self, cli, directory: Path, uid: int) -> None:
        self.directory, self.is_root = directory, uid == 0
        self.runtime = directory / (f"user/{uid}/systemd" if uid else "systemd/system")
        self.runtime.mkdir(parents=True)
        for name, text in PROGRAMS.items():
            (directory / name).write_text(f'#!/bin/sh\ncd "$(dirname "$0")"\n{text}')
            (directory / name).chmod(0o755)
        self.crontab = directory / "tab"
        (directory / "calls").touch()
        self.units = cli.home / ".config/systemd/user" if uid else directory / "units"
        cli.environment["PATH"] = f"{directory}:{cli.environment['PATH']}"
        at_start = f"""
import os, pathlib
from dkimctl.cli import timers
os.geteuid = lambda: {uid}
timers.SYSTEM_UNITS = pathlib.Path({str(directory / "units")!r})
timers.SYSTEM_CRON = pathlib.Path({str(directory / "cron.d")!r})
timers.RUNTIME = pathlib.Path({str(directory)!r})
"""
        cli.environment["AT_START"] = at_start

    def calls(self) -> list[str]:
        """What systemctl was asked to change since the last look."""
        file = self.directory / "calls"
        calls = [line for line in file.read_text().splitlines() if "is-active" not in line]
        file.write_text("")
        return calls


@pytest.fixture(params=[0, 1000], ids=["root", "user"])
def system(request, cli, tmp_path):
    if request.param != os.geteuid() and os.geteuid() != 0:
        pytest.skip("needs root")
    return System(cli, tmp_path / "system", request.param)


def doctor(cli) -> tuple[str, str]:
    """What `doctor` says of the timer."""
    items = cli("doctor", "--sandbox", "--offline", "--format", "json").json["items"]
    [found] = [item for item in items if item["check"] == "timer"]
    return found["state"], found["message"]


def test_the_path_of_the_program_stands_in_a_unit_as_it_is(cli, system, needs_tool):
    program = cli.home / "a $b %c/dkimctl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    cli.environment["PATH"] = f"{program.parent}:{cli.environment['PATH']}"
    assert cli("timer", "--sandbox", "--yes").status == 0
    verify = [needs_tool("systemd-analyze"), "verify", "--man=no", system.units / f"{UNIT}.service"]
    checked = subprocess.run(verify, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_units_are_written_once_then_replaced_and_removed(cli, system, needs_tool):
    register(cli, "example.com")
    service, timer = (system.units / f"{UNIT}.{kind}" for kind in ("service", "timer"))
    done = cli("timer", "--sandbox")
    assert (done.status, service.exists(), system.calls()) == (2, False, [])
    assert f"write {timer}\n" in done.out
    assert "there is no terminal to ask on\nhint: add --yes" in done.err
    done = cli("timer", "--sandbox", "--yes")
    assert done.status == 0, done.err
    scope = "" if system.is_root else "--user "
    assert system.calls() == [
        f"{scope}{words}"
        for words in ("daemon-reload", f"enable {UNIT}.timer", f"restart {UNIT}.timer")
    ]
    assert ("loginctl enable-linger" in done.err) is not system.is_root
    assert f"its next run: `systemctl {scope}list-timers {UNIT}.timer`\n" in done.err
    verify = [needs_tool("systemd-analyze"), "verify", "--man=no", service, timer]
    checked = subprocess.run(verify, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert doctor(cli) == ("ok", f"nothing is overdue; {timer}")
    cli.write("dns.yaml", "dns: [{provider: rfc2136, server: 127.0.0.1, profiles: [sandbox]}]\n")
    done = cli("register", "--sandbox", "--config", "dns.yaml", "--domain", "example.net")
    assert "the timer publishes and checks the records; to do it now: `dkimctl publish" in done.err
    done = cli("timer", "--sandbox")
    assert (done.status, done.out, system.calls()) == (0, "", [])
    (system.directory / "active").unlink()
    assert cli("timer", "--sandbox", "--yes").out.startswith("run systemctl ")
    # Another directory of state, with what a unit has to escape.
    cli.environment["DKIMCTL_STATE_DIR"] = str(cli.home / 'a "b\\c" $d %t')
    done = cli("timer", "--sandbox", "--yes")
    assert "nothing is registered yet" in done.err
    assert (done.status, done.out.count("write ")) == (0, 1)
    checked = subprocess.run(verify, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert 'a \\"b\\\\c\\" $d %%t"\n' in service.read_text()
    system.calls()
    assert cli("timer", "--sandbox", "--remove", "--yes").status == 0
    assert system.calls() == [f"{scope}disable --now {UNIT}.timer", f"{scope}daemon-reload"]
    assert list(system.units.iterdir()) == []
    assert cli("timer", "--profile", "gone", "--remove")[:2] == (0, "")


@pytest.mark.parametrize("how", ["edited", "masked", "by hand"])
def test_a_unit_that_is_not_ours_is_left(cli, system, how):
    file = system.units / f"{UNIT}.timer"
    if how == "edited":
        assert cli("timer", "--sandbox", "--yes").status == 0
        file.write_text(file.read_text().replace("RandomizedDelaySec=1h", "RandomizedDelaySec=2h"))
    else:
        system.units.mkdir(parents=True)
        file.symlink_to("/dev/null") if how == "masked" else file.write_text("[Timer]\n")
    before = sorted((file, file.read_bytes()) for file in system.units.iterdir())
    (system.directory / "calls").write_text("")
    for words in ((), ("--remove",)):
        done = cli("timer", "--sandbox", "--yes", *words)
        assert (done.status, done.out, system.calls()) == (1, "", [])
        assert f"left as it is: {file}" in done.err
    assert sorted((file, file.read_bytes()) for file in system.units.iterdir()) == before


def test_a_line_of_the_crontab_runs_and_all_others_stay(cli, system):
    system.runtime.rmdir()
    system.crontab.write_bytes(MINE)
    cli.environment["DKIMCTL_STATE_DIR"] = str(cli.home / "a b%c 00000000")
    register(cli, "example.com")
    for _ in range(2):
        assert cli("timer", "--sandbox", "--yes").status == 0
    text = system.crontab.read_bytes()
    assert text.startswith(MINE + b"\n")
    [line] = text[len(MINE) :].decode().split("\n")[1:-1]
    minute, hours, command = re.fullmatch(r"(\d+) (\d)-23/6 \* \* \* (.*)", line).groups()
    assert (int(minute) < 60, int(hours) < 6) == (True, True)
    words = ["/bin/sh", "-c", command.replace("\\%", "%")]
    done = subprocess.run(words, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert doctor(cli) == ("ok", "nothing is overdue; a line of your crontab")
    # An edited one is left; one that cannot be read is not taken for an empty one.
    system.crontab.write_bytes(edited := text.replace(b"-23/6", b"-23/2"))
    assert cli("timer", "--sandbox", "--remove", "--yes").status == 1
    (system.directory / "denied").touch()
    done = cli("timer", "--sandbox", "--yes")
    assert (done.status, system.crontab.read_bytes()) == (4, edited)
    assert "`crontab -l` failed: you are not allowed" in done.err
    (system.directory / "denied").unlink()
    system.crontab.write_bytes(text)
    assert cli("timer", "--sandbox", "--remove", "--yes").status == 0
    assert system.crontab.read_bytes() == MINE + b"\n"
    system.crontab.write_bytes(b"0 6 * * * /opt/dkimctl rotate run\n")
    assert cli("timer", "--sandbox", "--yes").status == 1


def test_which_lines_of_a_crontab_are_the_timer_of_a_ledger(cli, system):
    system.runtime.rmdir()
    register(cli, "example.com")
    assert cli("timer", "--sandbox", "--yes").status == 0
    line, state = system.crontab.read_text(), str(cli.home / ".local/state/dkimctl")
    assert (state in line, doctor(cli)[0]) == (True, "ok")
    by_hand = "0 6 * * * /opt/dkimctl rotate run --profile "
    for other in (
        f"# {line}", line.replace(state, f"{state}-2"), f"{by_hand}agency\n", f"#{by_hand}sandbox\n"
    ):  # fmt: skip
        system.crontab.write_text(other)
        assert doctor(cli) == ("note", "nothing is overdue; no timer is installed"), other
    file = system.directory / "cron.d/dkimctl"
    file.parent.mkdir()
    file.write_text("17 */6 * * *  root  /usr/local/sbin/dkimctl rotate run --quiet\n")
    assert doctor(cli) == ("ok", f"nothing is overdue; {file}")
    # A second timer would make a second successor; one of one's own can be removed.
    for text, status in (("", 1), (line, 0)):
        system.crontab.write_text(text)
        done = cli("timer", "--sandbox", "--yes")
        assert (done.status, f"left as it is: {file}\n" in done.err) == (1, True)
        assert system.crontab.read_text() == text
        assert cli("timer", "--sandbox", "--yes", "--remove").status == status
    assert system.crontab.read_text() == ""
    file.write_text(f"DKIMCTL_STATE_DIR={state}-2\n{file.read_text()}")
    assert doctor(cli)[0] == "note"
    system.crontab.write_text(f"{by_hand}'sandbox'\n")
    assert doctor(cli)[0] == "ok"
    # A line that was commented out, or is for another profile, stays where it is.
    system.crontab.write_text(f"# {line}{by_hand}agency\n")
    assert cli("timer", "--sandbox", "--yes").status == 0
    assert system.crontab.read_text() == f"# {line}{by_hand}agency\n{line}"
    assert cli("timer", "--sandbox", "--remove", "--yes").status == 0
    assert system.crontab.read_text() == f"# {line}{by_hand}agency\n"


@pytest.mark.parametrize("change", ["another line", "the same timer"])
def test_a_crontab_that_changes_while_it_is_asked_keeps_what_others_wrote(cli, system, change):
    system.runtime.rmdir()
    assert cli("timer", "--sandbox", "--yes").status == 0
    line = system.crontab.read_text()
    system.crontab.write_text("")
    added = "0 1 * * * backup\n" if change == "another line" else line
    cli.environment["AT_START"] += f"""
from dkimctl.cli import terminal
terminal.confirms = lambda *_, **__: pathlib.Path({str(system.crontab)!r}).write_text({added!r})
"""
    done = cli("timer", "--sandbox")
    if change == "another line":
        assert (done.status, system.crontab.read_text()) == (0, added + line)
    else:
        assert (done.status, system.crontab.read_text()) == (4, line)
        assert "was changed meanwhile" in done.err


def test_cron_is_not_asked_where_nobody_reads_the_answer(cli, system):
    """Cron logs each question, and a monitor checks every few minutes."""
    system.runtime.rmdir()
    register(cli, "example.com")
    asked = system.directory / "asked"
    before = asked.read_text() if asked.exists() else ""
    for words in (("--quiet",), ("--format", "json")):
        cli("check-dns", "--sandbox", "--server", "127.0.0.1:1", *words)
    assert (asked.read_text() if asked.exists() else "") == before


def test_it_is_asked_and_what_the_runs_will_not_have_is_said(cli, on_terminal, tmp_path):
    system = System(cli, tmp_path / "system", os.geteuid())
    system.runtime.rmdir()
    account = "auth_url: https://a.example, base_url: https://a.example, client_id: x"
    config = f"profiles: {{default: {{{account}}}}}\n"
    config += "dns: [{provider: octodns, class: a.B, settings: {token: env/TOKEN}}]\n"
    cli.write("my.yaml", config)
    cli.environment["HTTPS_PROXY"] = "http://me:secret@proxy.example"
    words = ["timer", "--config", "my.yaml"]
    done = cli(*words, "--timeout", "5s")
    assert (done.status, "--timeout would not reach the timer" in done.err) == (2, True)
    status, shown = on_terminal(words, [("Install", "n")], size=(60, 200))
    assert (status, system.crontab.exists()) == (1, False)
    assert "do not have the variables of your shell: HTTPS_PROXY, TOKEN" in shown
    assert "the secret is in the keyring" in shown
    status, shown = on_terminal(words, [("Install", "y")], size=(60, 200))
    assert status == 0, shown
    line = system.crontab.read_text()
    assert f"DKIMCTL_CONFIG={cli.home}/my.yaml" in line
    assert f". {cli.home}/secrets.env;" in line
    assert "--profile default #" in line


def test_without_systemd_and_cron_the_way_by_hand_is_named(cli, tmp_path):
    system = System(cli, tmp_path / "system", os.geteuid())
    system.runtime.rmdir()
    cli.environment["PATH"] = str(tmp_path)
    done = cli("timer", "--sandbox")
    assert (done.status, "neither systemd nor cron" in done.err) == (2, True)
    register(cli, "example.com")
    words = ["/bin/sh", "-ec", cli("timer", "--sandbox").out]
    ran = subprocess.run(words, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    cli.environment["AT_START"] += "timers.sys = type('', (), {'platform': 'darwin'})"
    done = cli("timer", "--sandbox", "--yes")
    assert (done.status, "have launchd run `dkimctl rotate" in done.err) == (2, True)
    assert not system.crontab.exists()
