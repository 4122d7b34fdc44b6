"""Completion: by TAB in real shells, and what Typer answers when their scripts ask."""

from __future__ import annotations

import os
import select
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dkimctl.cli.main import COMPLETION_VARIABLE as VARIABLE
from dkimctl.cli.options import MOST_DOMAINS
from documents import ROOT

CONFIG = """\
profiles:
  test: {auth_url: https://auth.example, base_url: https://example.com, client_id: client-of-test}
"""
SPECS = """\
- {sign_domain: example.com, selector: s, key_len: 2048}
- {sign_domain: mail.example.net, selector: s, key_len: 2048}
"""
BOTH = ["example.com", "mail.example.net"]
# For each shell: the file that it reads, and what that has to say.
SCRIPTS = ROOT / "completions"
SOURCES = {
    "bash": (".bashrc", f". '{SCRIPTS}/dkimctl.bash'\n"),
    "zsh": (
        ".zshrc",
        "autoload -U compinit; compinit; source <(dkimctl completion zsh)\n",
    ),
    "fish": (".config/fish/completions/dkimctl.fish", (SCRIPTS / "dkimctl.fish").read_text()),
}


LIMIT = 60.0  # seconds for one answer of a shell
# A function of the name of the program: the completion asks the program, what is run is noted.
_NOTE = {
    "bash": """dkimctl() { printf '%s\\n' "$@" > ran.new; mv ran.new ran; }""",
    "zsh": """dkimctl() { printf '%s\\n' "$@" > ran.new; mv ran.new ran; }""",
    "fish": "function dkimctl; printf '%s\\n' $argv > ran.new; mv ran.new ran; end",
}
READY = "ready-to-type"


class InteractiveShell:
    """A shell with its files in `home`, in a terminal of 40 lines and 200 columns."""

    def __init__(self, shell: str, path: str, home: Path, environment: Mapping[str, str]) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self.shell = shell
        self._ran = home / "ran"
        self._primary, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self._process = subprocess.Popen(
            [path, "-i"], stdin=secondary, stdout=secondary, stderr=secondary, cwd=home,
            env={**environment, "TERM": "xterm", "SHELL": path}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(secondary, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads
        )  # fmt: skip
        os.close(secondary)
        self._shown = ""
        self.send(f"{_NOTE[shell]}\n")
        self.send(f"echo {READY[:5]}''{READY[5:]}\n")
        self.expect(READY)

    def send(self, text: str) -> None:
        os.write(self._primary, text.encode())

    def expect(self, text: str) -> str:
        """Wait until `text` is shown; gives what was shown up to then, since the last time."""
        deadline = time.monotonic() + LIMIT
        while text not in self._shown:
            assert time.monotonic() < deadline, f"{text!r} was not shown, but: {self._shown!r}"
            if select.select([self._primary], [], [], 0.2)[0]:
                self._shown += os.read(self._primary, 65536).decode(errors="replace")
        seen, _, self._shown = self._shown.partition(text)
        return seen

    def completed(self, typed: str) -> list[str]:
        """The words that are run when this is typed (with `\\t` where TAB is pressed) and Enter."""
        self._ran.unlink(missing_ok=True)
        self.send(f"{typed}\n")
        deadline = time.monotonic() + LIMIT
        while not self._ran.exists():
            assert time.monotonic() < deadline, f"{typed!r} did not run; shown: {self._shown!r}"
            if select.select([self._primary], [], [], 0.05)[0]:
                self._shown += os.read(self._primary, 65536).decode(errors="replace")
        return self._ran.read_text().splitlines()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._primary)


@pytest.fixture
def ask(cli):
    """The words for the end of a line, each with its help if it has any."""

    def ask(line: str, **environment: str) -> list[str]:
        asked = {
            VARIABLE: "complete_fish",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "_TYPER_COMPLETE_ARGS": f"dkimctl {line}",
        }
        done = cli(env=asked | environment)
        assert (done.status, done.err) == (0, "")
        return done.out.strip("\n").splitlines()

    return ask


@pytest.fixture
def registered(cli) -> None:
    """A sandbox with two domains, and a config with the profile `test`."""
    cli.write("one.yaml", SPECS)
    assert cli("register", "--sandbox", "one.yaml").status == 0
    cli.write("config.yaml", CONFIG)
    cli.environment["DKIMCTL_CONFIG"] = str(cli.home / "config.yaml")


@pytest.fixture
def add_domains(cli, registered):
    """Add domains to the sandbox's ledger, whatever their names."""

    def add(*names: str) -> None:
        with sqlite3.connect(next(cli.home.rglob("ledger.db"))) as ledger:
            ledger.executemany(
                "INSERT INTO registration (account_id, sign_domain, selector) VALUES (1, ?, 's')",
                ((name,) for name in names),
            )
        ledger.close()

    return add


@pytest.mark.parametrize("shell", SOURCES)
def test_the_stored_scripts_are_those_that_are_printed(cli, shell):
    done = cli("completion", shell)
    stored = (SCRIPTS / f"dkimctl.{shell}").read_text(encoding="utf-8")
    assert (done.status, done.out, done.err) == (0, stored, "")


@pytest.fixture(params=SOURCES)
def interactive(request, cli, needs_tool, registered) -> Iterator[InteractiveShell]:
    """A shell with its script."""
    if sys.platform == "win32":
        pytest.skip("needs a pseudo-terminal")
    name, content = SOURCES[request.param]
    (cli.home / name).parent.mkdir(parents=True, exist_ok=True)
    cli.write(name, content)
    path = needs_tool(request.param)
    shell = InteractiveShell(request.param, path, cli.home, cli.environment)
    yield shell
    shell.close()


@pytest.mark.slow
def test_tab_completes_in_a_real_shell(interactive, cli):
    cli("service", "client", "create", "one", "--data", "my service.db")
    for typed, words in {
        "regi\tone.y\t": ["register", "one.yaml"],
        "rotate r\t--dr\t": ["rotate", "run", "--dry-run"],
        "show-dns --form\tte\t": ["show-dns", "--format", "terraform"],
        "status -p t\t": ["status", "-p", "test"],
        "--sandbox show-dns ex\tmai\t": ["--sandbox", "show-dns", *BOTH],
        "show-dns on\t": ["show-dns", "one.yaml"],
        "service client delete --data 'my service.db' on\t": [
            "service", "client", "delete", "--data", "my service.db", "one"
        ],
        "show-dns --profile zz\t": ["show-dns", "--profile", "zz"],
    }.items():  # fmt: skip
        assert interactive.completed(f"dkimctl {typed}") == words, typed


@pytest.mark.slow
def test_a_script_in_fpath_completes_from_the_first_tab_on(cli, needs_tool):
    if sys.platform == "win32":
        pytest.skip("needs a pseudo-terminal")
    (cli.home / "zfunc").mkdir()
    cli.write("zfunc/_dkimctl", (SCRIPTS / "dkimctl.zsh").read_text())
    cli.write(".zshrc", "fpath=(~/zfunc $fpath); autoload -U compinit; compinit\n")
    shell = InteractiveShell("zsh", needs_tool("zsh"), cli.home, cli.environment)
    try:
        assert shell.completed("dkimctl regi\tx") == ["register", "x"]
    finally:
        shell.close()


@pytest.mark.usefixtures("registered")
def test_powershell_gets_what_its_script_splits(cli):
    script = cli("completion", "powershell").out
    assert script.count("{") == script.count("}") > 0
    assert (
        "Register-ArgumentCompleter -Native -CommandName dkimctl -ScriptBlock $scriptblock"
        in script
    )
    assert f'$Env:{VARIABLE} = "complete_powershell"' in script
    assert 'dkimctl | ForEach-Object {\n        $commandArray = $_ -Split ":::"' in script

    def ask(line: str, word: str) -> list[list[str]]:
        asked = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_WORD_TO_COMPLETE": word}
        done = cli(env={VARIABLE: "complete_powershell", **asked})
        return [answer.split(":::") for answer in done.out.splitlines()]

    assert ask("dkimctl show-dns --sandbox ", "") == [[name, " "] for name in BOTH]
    [[name, text]] = ask("dkimctl regi", "regi")  # PowerShell refuses an empty text
    assert (name, text[:8]) == ("register", "Register")
    # It sets the variable to nothing afterwards, which since 7.5 is not to unset it.
    assert cli("status", "--sandbox", env={VARIABLE: ""}).out


@pytest.mark.usefixtures("registered")
def test_names_are_those_of_what_is_on_the_line(ask):
    for line, words in {
        "-p te": ["test"],
        "status --profile ": ["default", "sandbox", "test"],
        "profile delete te": ["test"],
        "show-dns --sandbox ": BOTH,
        "show-dns --profile sandbox mail.example.net e": BOTH[:1],
        "-p test show-dns -p sandbox e": BOTH[:1],
        "--sandbox show-dns e": BOTH[:1],
        "-p test show-dns e": [],
        "-p unknown show-dns e": [],
        "ledger forget --sandbox m": BOTH[1:],
        "rotate --sandbox ": ["run", *BOTH],
        "rotate example.com r": [],
        "rotate": ["rotate\tPrint specs (YAML) for the successors of..."],
        "show-dns --format te": ["terraform"],
        "rotate --key-len ": ["1024", "2048"],
        "api P": ["POST", "PUT", "PATCH"],
        "service cl": ["client\tCreate, list, disable, enable and delete..."],
        "wrong x": [],
        "register ": [],
    }.items():
        assert ask(line) == words, line


@pytest.mark.usefixtures("registered")
def test_the_config_on_the_line_is_read(ask, cli):
    del cli.environment["DKIMCTL_CONFIG"]
    for config in ("config.yaml", "~/config.yaml", str(cli.home / "config.yaml")):
        assert ask(f"status --config {config} -p te") == ["test"]
    assert ask("status -p te") == ask("status --config - -p te") == []


def test_client_ids_are_those_of_the_data_file_on_the_line(ask, cli):
    for name in ("one", "two", "$(id)", "gone"):
        cli("service", "client", "create", name, "--data", "my service.db")
    cli("service", "client", "delete", "gone", "--yes", "--data", "my service.db")
    cli("service", "client", "disable", "two", "--data", "my service.db")
    for data in ("'my service.db'", "~/my\\ service.db"):
        assert ask(f"service client delete --data {data} ") == ["one", "two"]
    for end in ("", "--data postgresql://db.example/dkimctl "):
        assert ask(f"service client delete {end}") == []
    assert {path.name for path in cli.home.iterdir()} == {"my service.db"}


def test_of_many_domains_some_are_offered_that_have_in_common_what_all_have(ask, add_domains):
    add_domains(*(f"mx{number:05}.example.org" for number in range(10_000)))
    offered = ask("show-dns --sandbox m")
    assert (len(offered), offered[0]) == (MOST_DOMAINS, "mail.example.net")
    assert offered[-1] == "mx09999.example.org"


def test_names_that_a_shell_could_act_on_are_not_offered(ask, add_domains):
    add_domains("$(touch x).example", "`id`.example", "a b.example", "é.example", "-x.example")
    add_domains("a\n.example", "a\x1b[31m.example", "*.example", "~.example", "'.example")
    assert ask("show-dns --sandbox ") == BOTH


@pytest.mark.usefixtures("registered")
def test_what_is_damaged_gives_no_names_and_no_message(ask, cli):
    ledger = next(cli.home.rglob("ledger.db"))
    sound = ledger.read_bytes()
    for content in (b"", b"no database", sound[:5000]):
        ledger.write_bytes(content)
        before = {path: path.stat().st_mtime_ns for path in cli.home.rglob("*")}
        assert ask("show-dns --sandbox ", DKIMCTL_DEBUG="1") == []
        assert {path: path.stat().st_mtime_ns for path in cli.home.rglob("*")} == before
    ledger.write_bytes(sound)
    assert ask("show-dns --sandbox ") == BOTH
    ledger.chmod(0o666)  # others can change it
    assert ask("show-dns --sandbox ") == []
    for config in ("profiles: [", "profiles: {x: {wrong: 1}}", "\0"):
        cli.write("config.yaml", config)
        assert ask("status -p ") == []


def test_a_script_of_another_version_gets_nothing(cli):
    for asked in ("profiles", "complete_tcsh", "wrong_bash", "x"):
        done = cli(env={VARIABLE: asked})
        assert (done.status, done.out, done.err) == (0, "", "")


def test_nothing_is_created_and_no_heavy_library_imported(ask, cli):
    assert (ask("list --sandbox -p "), ask("show-dns --sandbox ")) == (["default", "sandbox"], [])
    assert list(cli.home.iterdir()) == []
    cli.at_start("import atexit, sys\natexit.register(lambda: print(*sys.modules))\n")
    heavy = {"rich", "httpx", "keyring", "sqlalchemy", "cryptography", "msgspec", "yaml", "dns"}
    for line in ("-p ", "show-dns --sandbox ", "show-dns --"):
        imported = {name.partition(".")[0] for name in ask(line)[-1].split()}
        assert "dkimctl" in imported
        assert not heavy & imported, line
