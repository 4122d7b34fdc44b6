"""Completion, asked for as the shells' scripts do, and by TAB in real shells."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dkimctl.cli.completion.candidates import complete_line
from dkimctl.cli.completion.line import split_line
from dkimctl.cli.completion.protocol import LINE, SHELL, WORD_BREAKS
from dkimctl.cli.completion.scripts import INSTALLATIONS, Shell
from dkimctl.cli.completion.values import MOST_DOMAINS, source_of
from dkimctl.cli.main import LazyGroup
from needs import give_up
from shells import InteractiveShell

BASH_WORD_BREAKS = " \t\n\"'@><=;|&(:"
# Metavars of text that nothing here could know.
FREE_TEXT = {
    "URL", "ID", "[CLIENT_ID]", "N", "SECONDS", "TIME", "ZONE", "TEMPLATE", "PATH", "IP[:PORT]",
    "ADDRESS", "PORT", "DOMAIN", "SELECTOR", "GROUP", "DATE", "HOST[:PORT]", "CLASS",
    "TEXT", "FILTER", "FIELD",
}  # fmt: skip
CONFIG = """\
profiles:
  test: {auth_url: https://auth.example, base_url: https://example.com, client_id: client-of-test}
"""
SPECS = """\
- {sign_domain: example.com, selector: s, key_len: 2048}
- {sign_domain: mail.example.net, selector: s, key_len: 2048}
"""


@pytest.fixture
def ask(cli):
    """What a shell gets for the line up to the cursor: the files to offer, and the candidates."""

    def ask(line: str, shell: str = "fish", **environment: str) -> tuple[str, list[str]]:
        asked = {SHELL: shell, LINE: line, WORD_BREAKS: BASH_WORD_BREAKS}
        done = cli(env=asked | environment)
        assert done.err == ""
        files, *candidates = done.out.splitlines() or [""]
        return files, candidates

    return ask


@pytest.fixture
def registered(cli) -> None:
    """A sandbox with two domains, a config with the profile `test`, and files."""
    cli.write("one.yaml", SPECS)
    assert cli("register", "--sandbox", "one.yaml").status == 0
    cli.write("two words.yaml", "[]\n")
    cli.write("config.yaml", CONFIG)
    (cli.home / "out dir").mkdir()
    cli.environment["DKIMCTL_CONFIG"] = str(cli.home / "config.yaml")


def tree(command=None, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """All commands, with the words that call them."""
    command = LazyGroup() if command is None else command
    yield words, command
    for name in getattr(command, "commands", ()):
        yield from tree(command.get_command(None, name), (*words, name))


def test_all_values_can_be_completed_or_are_free_text():
    for words, command in tree():
        for parameter in command.params:
            if getattr(parameter, "is_flag", False):
                continue
            assert source_of(parameter) or parameter.metavar in FREE_TEXT, (
                f"{' '.join(words)} {parameter.opts}: add {parameter.metavar} to _SOURCES of "
                "dkimctl/cli/completion/values.py, or here if it is free text"
            )


def test_a_command_below_one_that_takes_a_selection():
    def names(text: str) -> list[str]:
        completion = complete_line(LazyGroup(), split_line(text), with_help=False)
        return [value for value, _ in completion.candidates]

    assert names("dkimctl rotate r") == ["run"]
    assert names("dkimctl rotate st") == ["status"]
    assert names("dkimctl rotate run r") == []
    assert "--wait" in names("dkimctl rotate run --w")
    assert "--wait" not in names("dkimctl rotate --w")
    assert names("dkimctl rotate status --ti") == ["--timeline"]
    assert names("dkimctl rotate status --format c") == ["csv"]


def test_all_commands_and_options_follow_from_the_command_tree():
    def names(*words: str) -> list[str]:
        line = split_line(" ".join(["dkimctl", *words]))
        return [value for value, _ in complete_line(LazyGroup(), line, with_help=True).candidates]

    for words, command in tree():
        if hasattr(command, "commands"):
            one_word = [name for name in command.commands if " " not in name]
            assert names(*words, "") == one_word
        shown = [option for option in command.params if not getattr(option, "hidden", False)]
        expected = {name for option in shown for name in option.opts if name.startswith("--")}
        assert {"--help", *expected} == set(names(*words, "--"))


def test_values_of_options_are_offered_in_every_spelling(ask):
    assert ask("dkimctl show-dns --format te") == ("none", ["terraform"])
    assert ask("dkimctl show-dns --format=te") == ("none", ["--format=terraform"])
    assert ask("dkimctl show-dns --format=te", "zsh") == ("none", ["terraform"])
    assert ask("dkimctl show-dns --format=te", "bash") == ("none", ["terraform"])
    assert ask("dkimctl show-dns --format=", "bash")[1][0] == "table"
    whole = ask("dkimctl show-dns --format=te", "bash", **{WORD_BREAKS: " \t\n"})
    assert whole == ("none", ["--format=terraform"]), "as if `=` were no end of a word"
    assert ask("dkimctl login --credential-store ")[1] == ["keyring", "file"]
    assert ask("dkimctl show-dns -f te")[1] == ["terraform"]
    assert ask("dkimctl --color n")[1] == ask("dkimctl status --color n")[1] == ["never"]
    assert ask("dkimctl show-dns --provider c")[1] == ["cloudflare"]
    assert ask("dkimctl rotate --key-len ")[1] == ["1024", "2048"]
    assert ask("dkimctl api d")[1] == ["DELETE"]
    assert ask("dkimctl completion z")[1] == ["zsh"]
    assert ask("dkimctl schema o")[1] == ["output"]
    assert ask("dkimctl schema output r")[1] == ["register", "rotate"]
    assert ask("dkimctl schema output rotate ")[1] == ["status", "run"]
    assert ask("dkimctl schema output service client l")[1] == ["list"]
    assert ask("dkimctl schema config ")[1] == []


def test_files_are_left_to_the_shell(ask):
    for line in ("register ", "show-dns --output=x", "show-dns --config ", "show-dns > x",
                 "show-dns --ca-bundle ", "ledger import ", "check-dns --from "):  # fmt: skip
        assert ask(f"dkimctl {line}") == ("files", [])
    assert ask("dkimctl show-dns --output-dir=x") == ("directories", [])
    assert ask("dkimctl login x") == ("none", [])


@pytest.mark.usefixtures("registered")
def test_profiles_are_offered_with_their_client_ids(ask, cli):
    offered = ["default", "sandbox\tthe embedded service", "test\tclient ID client-of-test"]
    assert ask("dkimctl status --profile ") == ("none", offered)
    assert ask("dkimctl status --profile=t", "bash") == ("none", ["test"])
    assert ask("dkimctl -p t") == ask("dkimctl status -p t") == ("none", offered[2:])
    del cli.environment["DKIMCTL_CONFIG"]
    assert ask("dkimctl status --config config.yaml --profile t")[1] == [offered[2]]
    assert ask("dkimctl status --config ~/config.yaml --profile t")[1] == [offered[2]]
    assert ask("dkimctl status --profile t")[1] == []


@pytest.mark.usefixtures("registered")
def test_domains_are_those_of_the_profile_on_the_line(ask):
    both = ["example.com", "mail.example.net"]
    for command in ("show-dns", "check-dns", "rotate", "ledger forget"):
        assert ask(f"dkimctl {command} --sandbox ") == ("specs", both)
    assert ask("dkimctl show-dns --profile sandbox mail.example.net e")[1] == ["example.com"]
    assert ask("dkimctl --sandbox show-dns e")[1] == ["example.com"]
    assert ask("dkimctl -p test show-dns -p sandbox e")[1] == ["example.com"]
    assert ask("dkimctl -p test show-dns e")[1] == []
    assert ask("dkimctl show-dns --profile=sandbox E")[1] == ["example.com"]
    assert ask("dkimctl show-dns ", DKIMCTL_PROFILE="sandbox")[1] == both
    assert ask("dkimctl show-dns --profile test ")[1] == []


def test_client_ids_are_those_of_the_data_file_on_the_line(ask, cli):
    for name in ("one", "two", "$(id)", "gone"):
        cli("service", "client", "create", name, "--data", "my service.db")
    cli("service", "client", "delete", "gone", "--data", "my service.db")
    cli("service", "client", "disable", "two", "--data", "my service.db")
    for command in ("client disable", "client enable", "client delete", "delivery add"):
        offered = ask(f"dkimctl service {command} --data 'my service.db' ")
        assert offered == ("none", ["one\tactive", "two\tdisabled"])
        assert ask(f"dkimctl service {command} ") == ("none", []), "there is no data file"
    assert ask("dkimctl service client create --data 'my service.db' ") == ("none", [])
    files = {path.name for path in cli.home.iterdir()}
    assert files == {"my service.db"}


@pytest.mark.usefixtures("registered")
def test_of_many_domains_some_are_offered_that_have_in_common_what_all_have(ask, cli):
    path = next(cli.home.rglob("ledger.db"))
    with sqlite3.connect(path) as ledger:
        ledger.executemany(
            "INSERT INTO registration (account_id, sign_domain, selector) VALUES (1, ?, 's')",
            ((f"mx{number:05}.example.org",) for number in range(10_000)),
        )
    ledger.close()
    _, offered = ask("dkimctl show-dns --sandbox m")
    assert (len(offered), offered[0]) == (MOST_DOMAINS, "mail.example.net")
    assert offered[-1] == "mx09999.example.org"
    assert ask("dkimctl show-dns --sandbox mx0777")[1] == [
        f"mx0777{digit}.example.org" for digit in range(10)
    ]


@pytest.mark.usefixtures("registered")
def test_names_that_a_shell_could_act_on_are_not_offered(ask, cli):
    path = next(cli.home.rglob("ledger.db"))
    names = ["$(touch x).example", "`id`.example", "a b.example", "é.example", "-x.example",
             "a\n.example", "a\x1b[31m.example", "*.example", "~.example", "'.example"]  # fmt: skip
    with sqlite3.connect(path) as ledger:
        ledger.executemany(
            "INSERT INTO registration (account_id, sign_domain, selector) VALUES (1, ?, 's')",
            ((name,) for name in names),
        )
    ledger.close()
    for shell in Shell:
        assert ask("dkimctl show-dns --sandbox ", shell)[1] == ["example.com", "mail.example.net"]


@pytest.mark.usefixtures("registered")
def test_what_is_damaged_gives_no_completion_and_no_message(ask, cli):
    ledger = next(cli.home.rglob("ledger.db"))
    for content in (b"", b"no database", ledger.read_bytes()[:5000]):
        ledger.write_bytes(content)
        before = {path: path.stat().st_mtime_ns for path in cli.home.rglob("*")}
        assert ask("dkimctl show-dns --sandbox ") == ("specs", [])
        assert ask("dkimctl show-dns --sandbox ", DKIMCTL_DEBUG="1") == ("specs", [])
        assert {path: path.stat().st_mtime_ns for path in cli.home.rglob("*")} == before
    for config in ("profiles: [", "profiles: {x: {wrong: 1}}", "\0"):
        cli.write("config.yaml", config)
        assert ask("dkimctl status --profile ") == ("none", [])
    assert ask("dkimctl status --config - --profile ") == ("none", [])
    assert ask("dkimctl wrong --pro") == ("none", [])
    older_script = cli(env={SHELL: "complete_bash", "COMP_WORDS": "dkimctl sta", "COMP_CWORD": "1"})
    assert (older_script.out, older_script.err) == ("", "")


def test_nothing_is_created(ask, cli):
    for line in ("show-dns --sandbox ", "status --profile ", "service client delete "):
        ask(f"dkimctl {line}")
    assert list(cli.home.iterdir()) == []


def test_no_heavy_library_is_imported(cli):
    cli.at_start(
        "import atexit, sys\n"
        "atexit.register(lambda: print(*{name.partition('.')[0] for name in sys.modules}))\n"
    )
    for line in ("", "register --", "show-dns --format=te", "show-dns --sandbox "):
        for shell in Shell:
            done = cli(env={SHELL: shell, LINE: f"dkimctl {line}"})
            heavy = {"rich", "httpx", "keyring", "sqlalchemy", "cryptography", "msgspec", "yaml"}
            assert not heavy & set(done.out.splitlines()[-1].split()), (shell, line)


# For each installation: what users have in their files already.
BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
PRESENT = {
    (Shell.BASH, 0): (".bashrc", f". {BASH_COMPLETION}\n"),
    (Shell.ZSH, 1): (".zshrc", "autoload -U compinit; compinit\n"),
}


@pytest.fixture(params=[(shell, n) for shell in Shell for n in range(len(INSTALLATIONS[shell]))],
                ids=lambda param: f"{param[0]}-{param[1]}")  # fmt: skip
def installed(request, cli, shell, needs_tool, registered) -> Iterator[InteractiveShell]:
    """A shell with the script, installed as the help says."""
    if sys.platform == "win32":
        pytest.skip("needs a pseudo-terminal")
    name, number = request.param
    path = needs_tool(name)
    if request.param == (Shell.BASH, 0) and not BASH_COMPLETION.exists():
        give_up("bash-completion is not installed")
    if request.param in PRESENT:
        cli.write(*PRESENT[request.param])
    shell("\n".join(INSTALLATIONS[name][number].commands), {})
    interactive = InteractiveShell(name, path, cli.home, cli.environment)
    yield interactive
    interactive.close()


def test_tab_completes_in_a_real_shell(installed, cli):
    cli("service", "client", "create", "client-1")
    for typed, words in {
        "regi\tone.yaml": "register one.yaml",
        "service cl\tdis\tcl\t": "service client disable client-1",
        "show-dns --form\tte\t": "show-dns --format terraform",
        "show-dns --format=te\t": "show-dns --format=terraform",
        "status -p t\t": "status -p test",
        "show-dns -f te\t": "show-dns -f terraform",
        "status --profile=t\t": "status --profile=test",
        "show-dns --sandbox ex\tmai\t": "show-dns --sandbox example.com mail.example.net",
        "--sandbox show-dns ex\t": "--sandbox show-dns example.com",
        "show-dns --sandbox 'mai\t": "show-dns --sandbox mail.example.net",
        "show-dns o\t": "show-dns o",
        "show-dns on\t": "show-dns one.yaml",
    }.items():
        assert installed.completed(f"dkimctl {typed}") == words.split(), typed
    for typed, words in {
        "register tw\t": ["register", "two words.yaml"],
        "register 'two w\t": ["register", "two words.yaml"],
        "register two\\ w\t": ["register", "two words.yaml"],
        "show-dns --output=tw\t": ["show-dns", "--output=two words.yaml"],
        "show-dns --output-dir ou\t": ["show-dns", "--output-dir", "out dir"],
        "show-dns --output-dir=ou\t": ["show-dns", "--output-dir=out dir"],
        "show-dns --profile zz\t": ["show-dns", "--profile", "zz"],
    }.items():
        completed = installed.completed(f"dkimctl {typed}")
        assert [word.removesuffix("/") for word in completed] == words, typed


def test_tab_lists_profiles_with_what_they_are(installed):
    installed.send("dkimctl status --profile \t\t")
    shown = installed.expect("sandbox") + installed.expect("test")
    if installed.shell != "bash":
        shown += installed.expect("client-of-test")
    assert not re.search("(?i)error|warning|traceback", shown)


def test_on_a_terminal_it_says_where_the_script_belongs(on_terminal, cli):
    for shell in Shell:
        status, shown = on_terminal(["completion", shell])
        assert status == 0
        for command in INSTALLATIONS[shell][0].commands:
            assert f"\r\n  {command}\r\n" in shown
        done = cli("completion", shell)
        assert (done.status, done.err) == (0, "")
