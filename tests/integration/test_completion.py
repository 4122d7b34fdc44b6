"""Completion in real shells: by their scripts' functions, and by TAB on a terminal."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import make_commands
from completers import SCRIPTS, Offered, complete
from dkimctl.cli.completion.scripts import INSTALLATIONS, Shell
from dkimctl.cli.completion.values import source_of
from needs import give_up
from shells import InteractiveShell

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
BOTH = ["example.com", "mail.example.net"]
HELP_OF_HELP = "Show this message and exit."


@pytest.fixture(params=Shell)
def shell_name(request) -> str:
    return str(request.param)


@pytest.fixture
def asked(cli, needs_tool):
    """What a shell offers at the end of each of some lines."""

    def asked(shell: str, *lines: str, **environment: str) -> dict[str, Offered]:
        answers = complete(
            shell, needs_tool(shell), lines,
            home=cli.home, environment=cli.environment | environment,
        )  # fmt: skip
        return dict(zip(lines, answers, strict=True))

    return asked


@pytest.fixture
def offers(asked, shell_name):
    """What each shell offers at the end of each of some lines."""
    return partial(asked, shell_name)


@pytest.fixture
def offer(offers):
    """What each shell offers at the end of a line."""
    return lambda line: offers(line)[line]


@pytest.fixture
def without_python(cli, tmp_path) -> None:
    """Neither Python nor dkimctl can be found: of all programs, only mv."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "mv").symlink_to(shutil.which("mv"))
    cli.environment["PATH"] = str(programs)


@pytest.fixture
def registered(cli) -> None:
    """A sandbox with two domains, a config with the profile `test`, and files."""
    cli.write("one.yaml", SPECS)
    assert cli("register", "--sandbox", "one.yaml").status == 0
    cli.write("two words.yaml", "[]\n")
    cli.write("config.yaml", CONFIG)
    (cli.home / "out dir").mkdir()
    cli.environment["DKIMCTL_CONFIG"] = str(cli.home / "config.yaml")


def all_commands() -> Iterator[tuple[str, Any]]:
    """All commands, by the line that calls them."""
    return ((" ".join(path), command) for path, command in make_commands.commands())


def choices_of(parameter: Any) -> list[str]:
    return sorted(map(str, getattr(parameter.type, "choices", ())))


def test_all_values_can_be_completed_or_are_free_text():
    for line, command in all_commands():
        for parameter in command.params:
            if getattr(parameter, "is_flag", False):
                continue
            assert source_of(parameter) or parameter.metavar in FREE_TEXT, (
                f"{line} {parameter.opts}: add {parameter.metavar} to _SOURCES of "
                "dkimctl/cli/completion/values.py, or here if it is free text"
            )


@pytest.mark.usefixtures("without_python")
def test_commands_and_options_are_those_of_the_make_commands(offers, shell_name):
    expected: dict[str, dict[str, str]] = {}  # by line: the words with their help
    commands = dict(all_commands())
    for line, command in commands.items():
        below = [name for name in getattr(command, "commands", ()) if " " not in name]
        if below:
            expected[f"{line} "] = {
                name: commands[f"{line} {name}"].get_short_help_str(limit=100) for name in below
            }
        shown = [each for each in command.params if not getattr(each, "hidden", False)]
        options = {name: each.help for each in shown for name in each.opts if name[0] == "-"}
        expected[f"{line} -"] = options | dict.fromkeys(["-h", "--help"], HELP_OF_HELP)
    for line, offered in offers(*expected).items():
        assert set(offered.names) == set(expected[line]), line
        assert offered.files == "none"
        if shell_name != "bash":  # which shows no help
            assert dict(word.split("\t") for word in offered.words) == expected[line]


@pytest.mark.usefixtures("without_python")
def test_choices_are_those_of_the_make_commands(offers, shell_name):
    expected: dict[str, list[str]] = {}
    for line, command in all_commands():
        for parameter in command.params:
            choices = choices_of(parameter)
            if choices and parameter.param_type_name == "argument":
                expected[f"{line} "] = choices
            elif choices and not parameter.hidden:
                expected |= {f"{line} {name} ": choices for name in parameter.opts}
                start = f"{parameter.opts[0]}="
                attached = (
                    [f"{start}{each}" for each in choices] if shell_name == "fish" else choices
                )
                expected[f"{line} {start}"] = attached
    assert len(expected) > 100
    for line, offered in offers(*expected).items():
        assert (offered.names, offered.files) == (expected[line], "none"), line


def test_options_and_commands_in_every_order(offers):
    expected = {
        "dkimctl --sandbox -p x serv": ["serve", "service"],
        "dkimctl --profile=x service client dis": ["disable"],
        "dkimctl service --color never client -q dis": ["disable"],
        "dkimctl rotate r": ["run"],
        "dkimctl rotate --sandbox --profile x st": ["status"],
        "dkimctl rotate run r": [],
        "dkimctl rotate example.com r": [],
        "dkimctl rotate run --dry": ["--dry-run"],
        "dkimctl rotate --sandbox run --wa": ["--wait"],
        "dkimctl rotate --dry": [],
        "dkimctl rotate status --ti": ["--timeline"],
        "dkimctl rotate status --format c": ["csv"],
        "dkimctl show-dns --format --profile --tt": ["--ttl"],  # a value like any other
        "dkimctl show-dns --wrong --format=te": ["terraform"],
        "dkimctl show-dns --wrong --profile x --form": ["--format"],
        "dkimctl show-dns -vf te": ["terraform"],
        "dkimctl show-dns -vfjson --form": [],
        "dkimctl show-dns -- --form": [],
        "dkimctl show-dns '--' --form": [],
        "dkimctl show-dns 'a b' \"c'd\" e\\ f '' --form": ["--format"],
        "dkimctl 'show-dns' --form": ["--format"],
        "dkimctl show-dns '--format' te": ["terraform"],
        "dkimctl list --timeout 5 --rev": ["--reverse"],  # a hidden option
        "dkimctl wrong --pro": [],
        "dkimctl wrong ": [],
        "dkimctl service wrong ": [],
        "dkimctl 'service client' --": [],
        "dkimctl ledger import - --conf": ["--config"],
        "dkimctl login x": [],
        "dkimctl schema output rotate st": ["status"],
        "dkimctl api GET ": [],
        "./bin/dkimctl show-dns --form": ["--format"],
        "~/bin/dkimctl show-dns --form": ["--format"],
    }
    for line, offered in offers(*expected).items():
        names = [name.removeprefix("--format=") for name in offered.names]
        assert names == expected[line], line


def test_an_option_is_offered_again_only_if_it_is_repeatable(offer):
    names = offer("dkimctl show-dns --ttl 1 --zone=a -f zone -qo x --").names
    assert {"--zone", "--provider"} <= set(names)
    assert not {"--ttl", "--format", "-f", "--quiet", "--output"} & set(names)
    assert "--profile" not in offer("dkimctl -p x show-dns --").names
    assert "--data" not in offer("dkimctl serve --database x --").names


def test_where_nothing_else_can_follow_options_are_offered(offer):
    assert "--format" in offer("dkimctl status ").names
    assert offer("dkimctl completion bash ").names == offer("dkimctl completion bash -").names


def test_values_of_options_that_are_no_choices(offers, shell_name):
    expected = {
        "dkimctl login --credential-store ": ["file", "keyring"],
        "dkimctl rotate --key-len ": ["1024", "2048"],
        "dkimctl api P": ["PATCH", "POST", "PUT"],
        "dkimctl handoff --provider cl": ["cloudflare"],
    }
    for line, offered in offers(*expected).items():
        assert (offered.names, offered.files) == (expected[line], "none"), line
    if shell_name == "bash":  # the others decide by their user's settings
        assert offers("dkimctl api d")["dkimctl api d"].names == ["DELETE"]


def test_files_are_left_to_the_shell(offers, shell_name):
    lines = ("register ", "show-dns --output=x", "show-dns --config ", "register --ca-bundle ",
             "ledger import ", "check-dns --from ", "register one.yaml two")  # fmt: skip
    for line, offered in offers(*(f"dkimctl {line}" for line in lines)).items():
        assert offered == ("files", []), line
    assert offers("dkimctl show-dns --output-dir=x", "dkimctl service export --output-dir ") == {
        "dkimctl show-dns --output-dir=x": ("directories", []),
        "dkimctl service export --output-dir ": ("directories", []),
    }
    specs = "files" if shell_name == "bash" else "specs"
    assert offers("dkimctl show-dns x")["dkimctl show-dns x"] == (specs, [])


@pytest.mark.usefixtures("registered")
def test_names_are_asked_of_dkimctl_with_what_is_on_the_line(offers, cli):
    cli("service", "client", "create", "one", "--data", "my service.db")
    test = ["test"]
    expected = {
        "dkimctl status --profile ": ["default", "sandbox", "test"],
        "dkimctl -p te": test,
        "dkimctl status --profile=te": test,
        "dkimctl profile delete te": test,
        "dkimctl show-dns --sandbox ": BOTH,
        "dkimctl show-dns --profile sandbox mail.example.net e": BOTH[:1],
        "dkimctl --sandbox show-dns e": BOTH[:1],
        "dkimctl -p test show-dns -p sandbox e": BOTH[:1],
        "dkimctl show-dns --profile=sandbox e": BOTH[:1],
        "dkimctl show-dns -vpsandbox e": BOTH[:1],
        "dkimctl -p test show-dns e": [],
        "dkimctl -p 'a\nb' show-dns e": [],
        "dkimctl ledger forget --sandbox m": BOTH[1:],
        "dkimctl service client delete --data 'my service.db' ": ["one"],
        "dkimctl service client delete --database=my\\ service.db ": ["one"],
        "dkimctl service client delete --data ~/my\\ service.db ": ["one"],
        "dkimctl service client delete ": [],
        "dkimctl service client create ": [],
        "./nowhere/dkimctl -p te": test,
    }
    for line, offered in offers(*expected).items():
        names = [name.removeprefix("--profile=") for name in offered.names]
        assert names == expected[line], line
    del cli.environment["DKIMCTL_CONFIG"]
    lines = [f"dkimctl status --config {path} -p te" for path in ("config.yaml", "~/config.yaml")]
    assert [offered.names for offered in offers(*lines).values()] == [test, test]


@pytest.mark.usefixtures("without_python")
def test_without_dkimctl_all_but_names_is_completed(offers, cli):
    assert not shutil.which("python3", path=cli.environment["PATH"])
    for line, offered in offers("dkimctl -p ", "dkimctl show-dns --sandbox ").items():
        assert offered.words == [], line
    assert offers("dkimctl rotate ")["dkimctl rotate "].names == ["run", "status"]


def test_nothing_on_the_line_is_executed(offers, cli):
    lines = [
        f"dkimctl show-dns {word} "
        for word in ("$(touch x)", "`touch x`", "'$(touch x)'", "\"$(touch x)\"", "-p$(touch x)",
                     "--profile=`touch x`", "--profile '$(touch x)'", ";touch x;", "a[$(touch x)]")
    ]  # fmt: skip
    offers(*lines, *(line.rstrip() for line in lines), *(f"{line}--pro" for line in lines))
    offers("'$(touch x)/dkimctl' -p ", "dkimctl '$(touch x)' -p ", "dkimctl $(touch x) -p ")
    assert not (cli.home / "x").exists()


def test_readline_keeps_what_is_before_a_word_break(asked):
    expected = {
        "dkimctl show-dns --format=te": ["terraform"],
        "dkimctl show-dns --format='te": ["terraform"],
        "dkimctl show-dns '--format=te": ["--format=terraform"],
        "dkimctl show-dns --format\\=te": ["--format=terraform"],
    }
    for line, offered in asked("bash", *expected).items():
        assert offered.words == expected[line], line
    line = "dkimctl show-dns --format=te"
    assert asked("bash", line, WORD_BREAKS=" \t\n")[line].words == ["--format=terraform"]


@pytest.mark.parametrize("operator", [">", ">>", "2>", "<", "&>", ">|", "2>&1 >"])
def test_the_file_of_a_redirection_is_no_word_of_the_command(asked, operator):
    files, after = f"dkimctl show-dns {operator} fi", f"dkimctl {operator} file sho"
    close = f"dkimctl {operator}file show-dns --form"
    offered = asked("bash", files, files[:-2], after, close)
    assert offered[files] == offered[files[:-2]] == ("files", [])
    assert offered[after].names == ["show-dns"]
    assert offered[close].names == ["--format"]


def test_bash_keeps_its_users_settings(cli, needs_tool):
    block = f"""
        set -u; IFS=,; shopt -s nocasematch
        . {SCRIPTS / "dkimctl.bash"}
        COMP_LINE='dkimctl show-dns --form' COMP_POINT=23
        _dkimctl_completion dkimctl
        echo "${{COMPREPLY[@]}}"
        [[ a == A && $IFS == , ]]
    """
    done = subprocess.run([needs_tool("bash"), "-c", block], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "--format\n")
    assert done.stderr == ""


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
    cli("service", "client", "create", "one", "--data", "my service.db")
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
        "show-dns --format='te\t": "show-dns --format=terraform",
        "show-dns '--format=te\t": "show-dns --format=terraform",
        "show-dns --profile=sandbox -- mai\t": "show-dns --profile=sandbox -- mail.example.net",
        "rotate --sandbox st\t--ti\t": "rotate --sandbox status --timeline",
        "show-dns o\t": "show-dns o",
        "show-dns on\t": "show-dns one.yaml",
    }.items():
        assert installed.completed(f"dkimctl {typed}") == words.split(), typed
    for typed, words in {
        "register tw\t": ["register", "two words.yaml"],
        "register 'two w\t": ["register", "two words.yaml"],
        "register two\\ w\t": ["register", "two words.yaml"],
        "service client delete --data 'my service.db' on\t": [
            "service", "client", "delete", "--data", "my service.db", "one"
        ],
        "show-dns --output=tw\t": ["show-dns", "--output=two words.yaml"],
        "show-dns --output-dir ou\t": ["show-dns", "--output-dir", "out dir"],
        "show-dns --output-dir=ou\t": ["show-dns", "--output-dir=out dir"],
        "show-dns --profile zz\t": ["show-dns", "--profile", "zz"],
    }.items():  # fmt: skip
        completed = installed.completed(f"dkimctl {typed}")
        assert [word.removesuffix("/") for word in completed] == words, typed


def test_tab_lists_profiles_with_what_they_are(installed):
    installed.send("dkimctl status --profile \t\t")
    shown = installed.expect("sandbox") + installed.expect("test")
    if installed.shell != "bash":
        shown += installed.expect("client-of-test")
    assert not re.search("(?i)error|warning|traceback", shown)


# For each shell: the file that it reads, and what that has to say.
SOURCES = {
    "bash": (".bashrc", f". '{SCRIPTS}/dkimctl.bash'\n"),
    "zsh": (".zshrc", f"autoload -U compinit; compinit; . '{SCRIPTS}/dkimctl.zsh'\n"),
    "fish": (".config/fish/config.fish", f"source '{SCRIPTS}/dkimctl.fish'\n"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_tab_completes_without_python_and_dkimctl(cli, needs_tool, shell_name, without_python):
    path = needs_tool(shell_name)
    name, content = SOURCES[shell_name]
    (cli.home / name).parent.mkdir(parents=True, exist_ok=True)
    cli.write(name, content)
    cli.write("domains.yaml", "")
    interactive = InteractiveShell(shell_name, path, cli.home, cli.environment)
    try:
        for typed, words in {
            "rot\tst\t--ti\t": "rotate status --timeline",
            "show-dns --form\tte\t": "show-dns --format terraform",
            "show-dns --format=te\tdom\t": "show-dns --format=terraform domains.yaml",
            "show-dns --profile x\t": "show-dns --profile x",
        }.items():
            assert interactive.completed(f"dkimctl {typed}") == words.split(), typed
    finally:
        interactive.close()


def test_on_a_terminal_it_says_where_the_script_belongs(on_terminal, cli):
    for shell in Shell:
        status, shown = on_terminal(["completion", shell])
        assert status == 0
        for command in INSTALLATIONS[shell][0].commands:
            assert f"\r\n  {command}\r\n" in shown
        done = cli("completion", shell)
        assert (done.status, done.err) == (0, "")
