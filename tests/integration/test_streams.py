"""stdout has only the result, and text from outside is escaped on terminals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from documents import example

ENTRY = "- {sign_domain: example.com, selector: s1, key_len: 2048, enable: false}\n"
HOSTILE = '\x1b]0;owned\x07\x1b[2J\n[red]x[/red] :smile: \u202e\x9b31m\r; "'


@pytest.fixture
def hostile(scripted_server, scripted_account, make_answer):
    """A service whose texts contain terminal sequences, markup and DNS syntax."""
    items = [
        {"result": {"code": "400", "message": HOSTILE}, "sign_domain": "example.com",
         "selector": "s1", "start_date": HOSTILE},
        {"result": {"code": "201", "message": HOSTILE}, "sign_domain": "example.org",
         "selector": f"s1{HOSTILE}", "regist_date": HOSTILE,
         "setting_values": {"fqdn": HOSTILE, "type": HOSTILE, "value": HOSTILE}},
    ]  # fmt: skip
    scripted_server.registering = make_answer(200, {"items": items, "count": 2, "total": 2})
    return scripted_account


SPECS = ENTRY + "- {sign_domain: example.org, key_len: 2048, enable: false}\n"


@pytest.mark.parametrize("fmt", ["table", "json", "jsonl", "zone", "value"])
def test_hostile_text_is_shown_escaped_in_every_format(cli, hostile, fmt):
    done = cli("register", "-", "--format", fmt, stdin=SPECS, env=hostile)
    assert done.status == 1
    shown = cli("show-dns", "--format", fmt, env=hostile)
    assert shown.status == 1
    for stream in (*done[1:], *shown[1:]):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", stream)
    if fmt in ("zone", "value"):
        assert done.out == shown.out == "", "an unusable record never gets into DNS output"


def test_hostile_arguments_and_files_are_shown_escaped(cli):
    for words in (
        ["register", "a\x1b[2Jb.yaml"],
        ["show-dns", "--sandbox", "a\x1b2J"],
        ["api", "G\x1b", "/"],
        ["\x1b[2J"],
        ["show-dns", "--profile", "\x1b[2J"],
    ):
        done = cli(*words)
        assert done.status == 2
        assert "\x1b" not in done.err
    done = cli("register", "--sandbox", "-", stdin='- "a\\e[2J.example"\n')
    assert done.status == 2
    assert "\x1b" not in done.err


@pytest.mark.parametrize("command", ["login", "api GET /x"])
def test_a_surplus_argument_is_not_quoted(cli, command):
    done = cli(*command.split(), "hunter2-secret")
    assert done.status == 2
    assert "unexpected extra argument" in done.err
    assert "hunter2" not in done.err


def test_a_traceback_is_escaped(cli, hostile, scripted_server, make_answer):
    scripted_server.answer = lambda request: make_answer(400, {"error": HOSTILE})
    done = subprocess.run(
        cli.command("token"), env=cli.environment | hostile | {"DKIMCTL_DEBUG": "1"},
        cwd=cli.home, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" in done.stderr
    assert r"\x1b]0;owned" in done.stderr.split("dkimctl: error:")[0]
    assert "\x1b" not in done.stderr


def test_a_closed_pipe_is_not_an_error(cli):
    specs = "".join(f"- {{sign_domain: d{n}.example, selector: s}}\n" for n in range(60))
    cli.write("many.yaml", specs)
    command = " ".join([*cli.command("register", "--sandbox", "many.yaml", "--batch-size", "10")])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | true"],
        cwd=cli.home, env=cli.environment, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0
    assert b"Broken" not in done.stderr
    assert b"Traceback" not in done.stderr
    assert len(cli("show-dns", "--sandbox", "--format", "jsonl").out.splitlines()) == 60


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_reported_but_does_not_stop_the_run(cli):
    specs = "".join(f"- {{sign_domain: d{n}.example, selector: s}}\n" for n in range(30))
    cli.write("many.yaml", specs)
    with Path("/dev/full").open("wb") as full:
        words = ("register", "--sandbox", "many.yaml", "--batch-size", "10")
        process = cli.start(*words, stdout=full, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert b"could not be written: No space left" in err
    assert b"Traceback" not in err
    assert len(cli("show-dns", "--sandbox", "--format", "jsonl").out.splitlines()) == 30


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["--version"], ["--help"]])
def test_a_version_or_help_that_cannot_be_written_is_an_error(cli, words):
    with Path("/dev/full").open("wb") as full:
        process = cli.start(*words, stdout=full, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert b"could not be written" in err
    assert b"Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="closes streams with a POSIX shell")
@pytest.mark.parametrize(
    ("closing", "status"),
    [(">&-", 0), ("2>&-", 0), (">&- 2>&-", 0), ("<&-", 2), ("2>/dev/full", 0)],
)
def test_a_closed_stream_is_tolerated(cli, closing, status):
    cli.write("one.yaml", ENTRY)
    command = " ".join(cli.command("register", "--sandbox", "-" if "<" in closing else "one.yaml"))
    done = subprocess.run(
        ["bash", "-c", f"{command} {closing}"],
        cwd=cli.home, env=cli.environment, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == status
    assert b"defect" not in done.stderr
    if status == 0:
        assert "s1._domainkey" in cli("show-dns", "--sandbox").out


def test_colour_is_used_only_on_terminals_without_no_color(cli, on_terminal):
    cli.write("one.yaml", ENTRY)
    words = ["register", "--sandbox", "one.yaml"]
    assert "\x1b[" not in cli(*words, "--format", "table").out
    status, shown = on_terminal(words)
    assert status == 0
    assert "\x1b[" in shown
    cli.environment["NO_COLOR"] = "1"
    status, shown = on_terminal(words)
    assert status == 0
    assert "\x1b[" not in shown


def test_tables_are_coloured_in_a_pipe_if_asked_and_dns_formats_never(cli):
    cli.write("one.yaml", ENTRY)
    colour = ("--color", "always")
    planned = cli("register", "--sandbox", "-n", "-f", "table", "one.yaml", *colour)
    assert "\x1b[" in planned.out
    assert cli(*colour, "register", "--sandbox", "one.yaml").status == 0
    shown = cli("show-dns", "--sandbox", "-f", "table", env={"FORCE_COLOR": "1"})
    assert "\x1b[" in shown.out
    for fmt in ("zone", "nsupdate", "value", "json", "csv"):
        done = cli("show-dns", "--sandbox", "-f", fmt, *colour)
        assert done.status == 0
        assert done.out
        assert "\x1b" not in done.out
    cli("show-dns", "--sandbox", "-f", "table", *colour, "-o", "table.txt")
    assert "\x1b" not in (cli.home / "table.txt").read_text(encoding="utf-8")


def test_a_table_in_a_pager_is_coloured_as_the_docs_say(cli, shell, needs_tool):
    needs_tool("less")
    cli.write("one.yaml", ENTRY)
    cli("register", "--sandbox", "one.yaml")
    assert "\x1b[32mexists" in shell(example("less -R"), {"DKIMCTL_PROFILE": "sandbox"}).stdout


@pytest.mark.parametrize("columns", [80, 200])
def test_the_value_is_complete_at_any_terminal_width(cli, on_terminal, columns):
    cli.write("one.yaml", ENTRY)
    cli("register", "--sandbox", "one.yaml")
    item = cli("show-dns", "--sandbox", "--format", "json").json["items"][0]
    status, shown = on_terminal(["show-dns", "--sandbox"], size=(24, columns))
    assert status == 0
    assert item["setting_values"]["value"] in shown.replace("\r", "").split("\n")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r", "")
    others = [line for line in plain.split("\n") if "p=" not in line]
    assert max(map(len, others)) <= columns


def many(cli, count=250):
    specs = "".join(
        f"- {{sign_domain: d{n}.example, selector: s, enable: false}}\n" for n in range(count)
    )
    return cli.write("many.yaml", specs)


def test_a_long_plan_shows_all_that_is_to_be_created(cli, on_terminal):
    cli("register", "--sandbox", "-", stdin="- {sign_domain: old.example, selector: s}\n")
    specs = many(cli)
    with (cli.home / specs).open("a") as file:
        file.write("- {sign_domain: old.example, selector: s}\n")
    words = ["register", "--dry-run", "--sandbox", specs]
    status, shown = on_terminal(words)
    assert status == 0
    assert all(f"\nd{n}.example " in shown for n in range(250))
    assert "\nold.example " not in shown
    assert "1 row that exists already is not shown; --format table shows all" in shown
    assert shown.splitlines()[-2] == "dkimctl: already there 1, to create 250"
    assert "\nold.example " in on_terminal([*words, "--format", "table"])[1]
    assert "\nold.example " in cli(*words).out, "a plan in a pipe is not cut"


@pytest.mark.slow
def test_long_output_goes_through_the_pager(cli, on_terminal):
    words = ["register", "--sandbox", many(cli, 30)]
    cli.environment["PAGER"] = "wc -l | sed 's/^/counted: /'"
    for more in (["--dry-run"], [], ["--format", "table"]):
        status, shown = on_terminal([*words, *more])
        assert status == 0
        counted, *rest = shown[shown.index("counted: ") :].splitlines()
        assert int(counted.split()[1]) > 30
        assert rest[0].startswith("dkimctl: "), "the summary comes after the pager has ended"
    assert "counted: " in on_terminal(["show-dns", "--sandbox"])[1]
    assert "counted: " not in on_terminal([*words, "--format", "json"])[1]
    assert "counted: " not in on_terminal(["show-dns", "--sandbox", "d1.example"])[1]
    assert "counted: " not in cli("show-dns", "--sandbox", "--format", "table").out
    on_terminal(["show-dns", "--sandbox", "--format", "table", "--output", "table.txt"])
    assert "counted: " not in (cli.home / "table.txt").read_text()


@pytest.mark.slow
def test_many_equal_reasons_share_a_warning(cli, scripted_server, scripted_account, make_answer):
    issue_token = scripted_server.answer

    def refuse(request):
        if request.path == "/oauth2/token":
            return issue_token(request)
        entries = json.loads(request.body)["domains"]
        items = [entry | {"result": {"code": "400", "message": "not now"}} for entry in entries]
        return make_answer(200, {"items": items, "count": len(items), "total": len(items)})

    scripted_server.answer = refuse
    words = ["register", many(cli)]
    done = cli(*words, env=scripted_account)
    assert done.status == 1
    *_, warning, hint, summary = done.err.splitlines()
    assert warning.startswith("dkimctl: warning: invalid: not now: 250 (d0.example (selector s), ")
    assert warning.endswith("d19.example (selector s), … and 230 more)")
    assert hint.startswith("hint: fix the entry")
    assert summary == "dkimctl: invalid 250"
    assert cli(*words, "--verbose", env=scripted_account).err.count("invalid: not now") == 250
    errors = json.loads(cli(*words, "--format", "json", env=scripted_account).err)
    assert sum(warning["code"] == "invalid" for warning in errors["warnings"]) == 250
    table = cli(*words, "--format", "table", env=scripted_account).out
    assert table.count("not now") == 250


def test_quiet_leaves_only_warnings_and_errors(cli):
    done = cli("register", "--sandbox", "-", "--quiet", stdin=ENTRY)
    assert (done.status, done.err) == (0, "")


def test_verbose_logs_each_request_without_secrets(cli, live_service, account):
    done = cli(
        "register", "-", "--verbose", stdin=ENTRY.replace("example.com", "v.example"), env=account
    )
    lines = [line for line in done.err.splitlines() if "POST" in line]
    assert len(lines) == 2
    assert re.search(
        r"POST http://127\.0\.0\.1:\d+/oauth2/token: 200, \d+ ms, \d+ bytes sent", lines[0]
    )
    assert account["DKIMCTL_CLIENT_SECRET"] not in done.err
    assert "Bearer" not in done.err


def test_verbose_logs_a_request_without_an_answer(cli, scripted_account, scripted_server):
    scripted_server.answer = lambda request: None
    done = cli("token", "-v", env=scripted_account)
    logged = r"dkimctl: POST \S+/oauth2/token: no response, \d+ ms, 29 bytes sent\n"
    assert (done.status, bool(re.match(logged, done.err))) == (4, True)


def test_all_problems_of_a_file_are_reported_as_json(cli):
    done = cli("register", "--sandbox", "-", "--format", "json", stdin="- a\n- b@c\n- 1.2.3.4\n")
    errors = json.loads(done.err)["errors"]
    assert [error["message"].partition(" ")[0] for error in errors] == [
        "<stdin>:1:3:", "<stdin>:2:3:", "<stdin>:3:3:",
    ]  # fmt: skip
    assert {error["code"] for error in errors} == {"input"}


def test_problems_that_are_alike_are_counted(cli):
    cli.write("bad.yaml", "".join(f"- bad {number}.example\n" for number in range(30)))
    done = cli("register", "--sandbox", "bad.yaml")
    *listed, more, hint = done.err.splitlines()
    assert (done.status, len(listed)) == (2, 20)
    assert 'bad.yaml:20:3: an entry: "bad 19.example" is not one domain name' in listed[-1]
    assert more == (
        "dkimctl: error: bad.yaml: … and 10 more like these (lines 21 to 30; --verbose lists them)"
    )
    assert hint.startswith("hint: write each by itself")
    assert len(cli("register", "--sandbox", "bad.yaml", "-v").err.splitlines()) == 60
    done = cli("register", "--sandbox", "bad.yaml", "--format", "json")
    assert len(json.loads(done.err)["errors"]) == 30


@pytest.mark.skipif(sys.platform == "win32", reason="names an encoding of POSIX locales")
def test_an_ascii_terminal_is_tolerated(cli):
    environment = {"PYTHONIOENCODING": "ascii"}
    done = cli("register", "--sandbox", "-", "--format", "table", stdin="- bücher.example\n- ü@ü\n",
               env=environment)  # fmt: skip
    assert done.status == 2
    assert "dkimctl: error" in done.err
