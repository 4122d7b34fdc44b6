"""What is known of a command line before it is parsed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dkimctl.cli.main import REMOVED, SHORT_FORMAT, last_value, root_command, run, split_command
from dkimctl.files import data_dir
from dkimctl.service.database import open_store


@pytest.mark.parametrize(
    ("lines", "is_json"),
    [(["status --format json", "status --format=json", "status -f json", "status -fjson",
       "register -nf json x", "register -nqfjson x", "show-dns --format zone --format json",
       "--color never status -f json"], True),
     (["status", "status --format table", "status --format", "status -f", "register json",
       "register -o -fjson.yaml -- -fjson", "status -- --format json", "show-dns -ofjson",
       "status --format json --format table", "status --formatjson", "status -p fjson"], False)],
)  # fmt: skip
def test_json_is_recognized_in_each_way_to_write_it(lines, is_json):
    for line in lines:
        assert (last_value(line.split(), "--format", SHORT_FORMAT) == "json") is is_json, line


@pytest.mark.parametrize(
    ("line", "name", "rest"),
    [("rotate run -n", "rotate run", "-n"), ("rotate", "rotate", ""),
     ("rotate --sandbox run x", "rotate run", "--sandbox x"),
     ("rotate -q --profile a --config=b run", "rotate run", "-q --profile a --config=b"),
     ("rotate --profile run", "rotate", "--profile run"),
     ("rotate --output run status", "rotate", "--output run status"),
     ("rotate -- run", "rotate", "-- run"), ("rotate x run", "rotate", "x run"),
     ("profile --sandbox list", "profile", "--sandbox list"), ("wrong run", "wrong", "run")],
)  # fmt: skip
def test_a_command_of_two_words_may_have_common_options_between_them(line, name, rest):
    assert split_command(line.split(), root_command().params) == (name, rest.split())


@pytest.mark.parametrize(("line", "text"), REMOVED.items())
def test_it_is_a_usage_error_that_names_the_replacement(line, text, capsys):
    assert run(line.split()) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith(("dkimctl: error: no such ", "dkimctl: error: invalid value for "))
    assert hint == f"hint: it was removed: {text}"


SECRET = "s3cr3t+Value/0815="


def commands(command, path=()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every command and group, with the words that lead to it."""
    yield path, command
    for name in getattr(command, "commands", ()):
        yield from commands(command.get_command(None, name), (*path, name))


TREE = dict(commands(root_command()))


def wrong_values(command) -> Iterator[list[str]]:
    """Each option that takes a choice or a number, with something else."""
    for option in command.params:
        kind = type(option.type).__name__
        if option.param_type_name == "option" and ("Choice" in kind or "Int" in kind):
            yield [f"{option.opts[0]}={SECRET}"]
            yield [option.opts[0], SECRET]


@pytest.mark.parametrize("path", TREE, ids=" ".join)
def test_no_command_quotes_what_it_does_not_understand(path, capsys):
    wrong = [[f"--{SECRET}"], [f"--secret={SECRET}"], [f"-{SECRET}"], ["x"] * 3 + [SECRET, "--no"]]
    if hasattr(TREE[path], "commands"):
        wrong.append([SECRET])
    for words in (*wrong, *wrong_values(TREE[path])):
        assert run([*path, *words]) == 2, words
        told = capsys.readouterr()
        assert "s3cr3t" not in told.out + told.err, words
        assert told.err.startswith("dkimctl: error: ")


@pytest.mark.parametrize(
    ("line", "error"),
    [(SECRET, "no such command"), ("status --banana", "no such option: --banana"),
     ("status --format yaml", "invalid value for '--format': it is not one of table, json"),
     ("show-dns --ttl=-1",
      "invalid value for '--ttl': it is not a whole number from 0 to 2147483647"),
     ("serve --max-domains=0",
      "invalid value for '--max-domains': it is not a whole number from 1 up"),
     ("status --timeout", "option '--timeout' requires an argument"),
     ("status x", "got unexpected extra argument"), ("register", "missing argument 'FILE'")],
)  # fmt: skip
def test_what_is_wrong_is_still_said(line, error, capsys):
    assert run(line.split()) == 2
    assert capsys.readouterr().err.startswith(f"dkimctl: error: {error}")


@pytest.mark.parametrize(
    ("line", "hint"),
    [("regster", "did you mean `dkimctl register`?"), (SECRET, "run `dkimctl --help`"),
     ("ledger imprt", "did you mean `dkimctl ledger import`?"),
     ("status --formt=json", "did you mean --format?"), ("show-dns --json", "write --format json"),
     ("list --limit 3", "run `dkimctl list --help`"), ("version", "run `dkimctl --version`"),
     ("status -o json", "write --format table or json"),
     ("overview --output x.html", "write --format table or json, or --html FILE"),
     ("login --client-secret x", "no option takes a secret: `dkimctl login` asks for it"),
     ("status --format yaml", "run `dkimctl status --help`"),
     ("register", "for example, `dkimctl register domains.yaml`")],
)  # fmt: skip
def test_the_hint_says_what_to_type(line, hint, capsys):
    assert run(line.split()) == 2
    _, told = capsys.readouterr().err.splitlines()
    assert told.startswith(f"hint: {hint}")


@pytest.mark.parametrize(
    "words", [["status", "--profile", SECRET], ["check-dns", "--wait", SECRET],
              ["service", "client", "create", f"id:{SECRET}"], ["status", "--timeout", SECRET],
              ["rotate", "--key-len", SECRET]]
)  # fmt: skip
def test_values_that_are_checked_later_are_not_quoted_either(words, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(words) == 2
    assert "s3cr3t" not in capsys.readouterr().err


def test_an_unknown_client_is_not_quoted(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    open_store(data_dir() / "service.db").close()
    for command in ("client disable", "client enable", "client delete", "delivery add"):
        assert run(["service", *command.split(), f"id:{SECRET}"]) == 1
        told = capsys.readouterr().err
        assert "the client does not exist" in told
        assert "s3cr3t" not in told
