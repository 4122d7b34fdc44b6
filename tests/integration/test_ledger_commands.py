"""`ledger import`, `forget` and `copy`: moving registrations between machines."""

from __future__ import annotations

import csv
import json
import os
import shlex
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.formats.renderer import Format
from dkimctl.ledger.account_lock import account_lock
from dkimctl.ledger.ledger import Ledger
from dkimctl.ledger.postgresql import Database
from dkimctl.ledger.tables import TABLES
from dkimctl.models import (
    Actor,
    Alarm,
    DmarcReport,
    DomainSpec,
    Outcome,
    ReportedMail,
    Result,
    key_of,
)  # fmt: skip
from ledgers import histories_of
from postgresql import ledger_url
from rendering import render_text

HERE = {"base_url": "http://127.0.0.1:1", "client_id": "me"}  # nothing listens there
SPECS = """
defaults: {enable: false, key_len: 1024}
domains:
- {sign_domain: example.com, selector: s1, default: 1}
- sign_domain: example.net
"""


@pytest.fixture
def ledger(cli, tmp_path):
    """Open the sandbox's ledger with the time of some days ago."""
    state = tmp_path / "state"
    cli.environment |= {
        "DKIMCTL_STATE_DIR": str(state),
        "DKIMCTL_BASE_URL": HERE["base_url"],
        "DKIMCTL_CLIENT_ID": HERE["client_id"],
    }

    def open_(*, days_ago: float = 0) -> Ledger:
        now = datetime.now(UTC).timestamp() - days_ago * 86400
        return Ledger.open(state / "ledger.db", **HERE, clock=lambda: now)

    return open_


def date(days_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days_ago)).isoformat(timespec="minutes")


def response(*items: object) -> str:
    return json.dumps({"items": items, "count": len(items), "total": len(items)})


def export(*registrations) -> str:
    results = [Result(registration, Outcome.EXISTS) for registration in registrations]
    return render_text(Format.JSON, results)


def test_a_new_ledger_asks_before_a_domain_gets_a_second_key(cli, account, on_terminal):
    cli.environment |= account
    cli.write("domains.yaml", SPECS)
    first = cli("register", "domains.yaml", "--format", "json")
    assert (first.status, json.loads(first.err)["warnings"][-1]["code"]) == (0, "new_ledger")
    cli.write("keys.json", cli("show-dns", "--format", "json").out)
    cli.environment["DKIMCTL_STATE_DIR"] = str(cli.home / "other")
    plan = cli("register", "--dry-run", "domains.yaml")
    for err in (first.err, plan.err):
        assert (
            "without selector that was registered elsewhere gets a second key: example.net" in err
        )
        assert "`dkimctl ledger import keys.json`" in err
    question = "1 domain without selector as new? [y/N]: "
    status, shown = on_terminal(["register", "domains.yaml"], [(question, "")])
    assert (status, "not confirmed, so nothing was sent" in shown) == (1, True)
    assert cli("ledger", "import", "keys.json").status == 0
    status, shown = on_terminal(["register", "domains.yaml"])
    assert (status, "already there 2" in shown) == (0, True)


def test_the_first_run_in_the_sandbox_warns_of_nothing_and_that_of_another_ledger_does(cli):
    words = ["register", "--sandbox", "--domain", "a.example"]
    assert "warning" not in cli(*words).err
    other = cli(*words, "--format", "csv", env={"DKIMCTL_STATE_DIR": str(cli.home / "other")})
    assert (other.status, "second key: a.example" in other.err) == (0, True)


def test_by_sudo_it_says_whose_state_it_is(cli, needs_root):
    done = cli("list", env={"SUDO_USER": "alice"})
    assert "with sudo, this is the state of root, and there is none yet" in done.err
    assert "hint: to use the state of alice, run it without sudo\n" in done.err
    for more in ({"DKIMCTL_STATE_DIR": str(cli.home / "other")}, {"SUDO_USER": "root"}):
        assert "with sudo" not in cli("list", env={"SUDO_USER": "alice"} | more).err


def known(ledger) -> list:
    with ledger() as opened:
        return list(opened.all())


@pytest.fixture
def elsewhere(cli):
    """Continue on another machine, without secret and state."""

    def move() -> None:
        cli.environment["HOME"] = cli.environment["USERPROFILE"] = str(cli.home / "elsewhere")

    return move


class TestImport:
    def test_another_machine_continues_where_the_first_stopped(self, cli, account, elsewhere):
        specs = cli.write("domains.yaml", SPECS.replace("example", "moved"))
        first = cli("register", specs, "--format", "json", env=account)
        assert first.status == 0
        elsewhere()
        del account["DKIMCTL_CLIENT_SECRET"]
        done = cli("ledger", "import", "-", stdin=first.out, env=account)
        assert (done.status, done.out, done.err) == (0, "", "dkimctl: imported 2\n")
        again = cli("register", specs, "--format", "json", "-v", env=account)
        assert again.status == 0, "nothing is sent, so no secret is needed"
        assert "POST" not in again.err
        assert [item["setting_values"] for item in again.json["items"]] == [
            item["setting_values"] for item in first.json["items"]
        ]
        shown = cli("show-dns", "--format", "json", env=account)
        assert shown.json["count"] == 2
        twice = cli("ledger", "import", "-", stdin=shown.out, env=account)
        assert (twice.status, twice.err) == (0, "dkimctl: already there 2\n")

    def test_a_raw_response_is_accepted_and_utf_16_as_windows_shells_write_it(
        self, cli, ledger, make_registration
    ):
        one, other = make_registration(), make_registration("example.net")
        [item] = json.loads(export(one))["items"]
        del item["outcome"]
        assert cli("ledger", "import", "-", stdin=response(item)).status == 0
        assert cli("ledger", "import", "-", stdin=export(other).encode("utf-16")).status == 0
        assert known(ledger) == [one, other]

    def test_items_that_are_not_registrations_are_reported_by_kind(
        self, cli, ledger, make_registration
    ):
        names = [{"sign_domain": f"d{number}.example", "selector": "s1"} for number in range(9)]
        good = json.loads(export(make_registration()))["items"][0]
        items = [
            {"result": None} | names[0],
            *({"result": {"code": 400, "message": "no\x1b[2J"}} | name for name in names[1:8]),
            {"result": {"code": "409"}} | names[8],
            {"sign_domain": 17},
            good | {"sign_domain": "exa mple.com"},
            good,
        ]
        done = cli("ledger", "import", "-", stdin=response(*items))
        assert (done.status, done.out) == (1, "")
        assert known(ledger) == [make_registration()]
        assert "left out, unknown: 1 (d0.example (selector s1): there was no answer" in done.err
        assert "left out, invalid: 8 (d1.example (selector s1): no" in done.err
        assert "left out, taken: 1 (d8.example (selector s1): another client" in done.err
        assert "d7.example" not in done.err, "of many, the first few"
        assert "items[9].sign_domain" in done.err
        assert "dkimctl: imported 1, left out 10\n" in done.err
        assert "\x1b" not in done.err

    def test_a_conflicting_registration_of_the_ledger_stays_and_is_named(
        self, cli, ledger, make_registration, key_records
    ):
        there = make_registration()
        other = there._replace(record=there.record._replace(value=key_records[2048] + ";"))
        new = make_registration("example.net")
        with ledger() as opened:
            opened.record([there])
        done = cli("ledger", "import", "-", stdin=export(other, new))
        assert (done.status, done.out) == (1, "")
        assert "example.com (selector s1): the ledger has another record, which" in done.err
        assert "dkimctl: imported 1, in conflict 1\n" in done.err
        assert known(ledger) == [there, new]

    @pytest.mark.parametrize(
        "content",
        ["[]", '{"items": 1}', "x" * 999_999, b'{"items": "\xe9"}', "[" * 99_999],
        ids=lambda content: repr(content[:14]),
    )  # fmt: skip
    def test_an_invalid_saved_result_is_2_and_changes_nothing(self, cli, tmp_path, content):
        done = cli("ledger", "import", "-", "--sandbox", stdin=content)
        assert (done.status, done.out) == (2, "")
        assert "<stdin> is not a saved result" in done.err
        assert "--format json" in done.err
        assert not list(cli.home.rglob("ledger.db"))

    def test_a_too_large_file_is_2(self, cli):
        with (cli.home / "huge.json").open("wb") as file:
            file.truncate((1 << 29) + 1)
        done = cli("ledger", "import", "huge.json", "--sandbox")
        assert (done.status, "larger than 512 MiB" in done.err) == (2, True)

    def test_an_empty_result_is_nothing_to_do_and_without_an_account_an_error(self, cli):
        done = cli("ledger", "import", "-", "--sandbox", stdin=response())
        assert (done.status, done.err) == (0, "dkimctl: nothing to import\n")
        assert cli("ledger", "import", "-", stdin=response()).status == 2


class TestForget:
    @pytest.fixture
    def pair(self, ledger, make_registration):
        """An old key, and its successor of three weeks ago, which was not seen published."""
        fields = {"default": 0, "enable": True}
        old, new = (
            make_registration(
                selector=name, start_date=date(days), regist_date=date(days), **fields
            )
            for name, days in (("s1", 300), ("s2", 21))
        )
        with ledger() as opened:
            opened.record([old, new])
            opened.note_replacements({new.key: "s1"})
            opened.commit(begun=[[DomainSpec("example.com", "s1")]])
        return old, new

    def see(self, ledger, days_ago, *selectors, verdict="published") -> None:
        with ledger(days_ago=days_ago) as opened:
            opened.note_looks({key_of("example.com", one): verdict for one in selectors})

    def test_a_retired_key_is_forgotten_and_can_be_imported_again(self, cli, ledger, pair):
        self.see(ledger, 15, "s1", "s2")
        self.see(ledger, 2, "s1", verdict="missing")
        done = cli("ledger", "forget", "example.com")
        assert done.status == 0, done.err
        assert [item["selector"] for item in done.json["items"]] == ["s1"]
        assert [item["outcome"] for item in done.json["items"]] == ["retired"]
        assert "dkimctl: forgot 1, kept 1 (not retired)\n" in done.err
        with ledger() as opened:
            assert list(opened.all()) == [pair[1]]
            assert set(histories_of(opened)) == {("example.com", "s2")}
            assert len(opened.intents()) == 1, "what was sent and never answered stays open"
            [closed] = opened.closed_keys()
            assert closed.key == ("example.com", "s1"), "so that its selector is not used again"
        assert cli("ledger", "import", "-", stdin=done.out).status == 0
        assert known(ledger) == list(pair)

    def test_a_key_that_is_not_retired_stays_with_a_reason(self, cli, ledger, pair):
        done = cli("ledger", "forget", "example.com")
        assert (done.status, done.out) == (1, "")
        assert "(selector s1) is not retired: its successor s2 started on" in done.err
        assert "but was never seen published" in done.err
        assert "none of the 2 selected registrations is retired" in done.err
        self.see(ledger, 13, "s2")
        done = cli("ledger", "forget", "example.com")
        assert (done.status, done.out) == (1, "")
        assert "its successor s2 started on" in done.err
        assert "wait until" in done.err
        assert known(ledger) == list(pair)

    @pytest.mark.parametrize("words", [(), ("--force",)])
    def test_what_the_last_check_saw_in_dns_is_refused(self, cli, ledger, pair, words):
        self.see(ledger, 15, "s1", "s2")
        self.see(ledger, 1, "s1", verdict="inconsistent")
        done = cli("ledger", "forget", "example.com", *words)
        assert (done.status, done.out) == (1, "")
        assert "example.com (selector s1): inconsistent" in done.err
        assert ("(selector s2): published" in done.err) is bool(words)
        assert "nothing was forgotten" in done.err
        assert "dkimctl check-dns DOMAIN" in done.err
        assert known(ledger) == list(pair)
        forgotten = cli("ledger", "forget", "example.com", "--still-published", *words)
        assert (forgotten.status, forgotten.json["count"]) == (0, 2 if words else 1)

    def test_a_retired_record_that_was_never_checked_is_refused(
        self, cli, ledger, pair, make_registration
    ):
        """`check-dns successors.yaml` does not look at the old records."""
        self.see(ledger, 15, "s2")
        done = cli("ledger", "forget", "*")
        assert (done.status, done.out) == (1, "")
        assert "example.com (selector s1): never checked" in done.err
        assert known(ledger) == list(pair)
        with ledger() as opened:
            opened.record([pair[0]._replace(key_len=1024)])
        done = cli("ledger", "forget", "*")
        assert (done.status, done.json["count"]) == (0, 1), "an unusable one cannot be checked"

    def test_force_forgets_the_whole_selection(self, cli, ledger, pair, make_registration):
        kept = make_registration("example.net")
        with ledger() as opened:
            opened.record([kept])
        cli.write("sold.yaml", "- {sign_domain: example.com, selector: s2}\n")
        assert cli("ledger", "forget", "--force", "sold.yaml").status == 0
        assert known(ledger) == [pair[0], kept]
        done = cli("ledger", "forget", "--force", "*.com", "--format", "json")
        assert (done.status, done.json["count"]) == (0, 1)
        assert json.loads(done.err)["warnings"][0]["code"] == "still_signs"
        assert known(ledger) == [kept]

    def test_nothing_is_forgotten_that_cannot_be_written(self, cli, ledger, pair):
        words = ("ledger", "forget", "--force", "example.com")
        assert cli(*words, "--output", "/dev/full").status == 4
        assert cli(*words, "--format", "zone").status == 2
        assert known(ledger) == list(pair)

    def test_a_selection_is_required_and_must_match(self, cli, ledger, pair):
        none = cli("ledger", "forget")
        assert (none.status, none.out) == (2, "")
        assert "SELECTION" in none.err
        absent = cli("ledger", "forget", "absent.example", "--force")
        assert (absent.status, absent.out) == (1, "")
        assert "nothing is registered in the profile default that matches absent" in absent.err
        partly = cli("ledger", "forget", "absent.example", "example.com", "--force")
        assert (partly.status, partly.json["count"]) == (1, 2)
        assert "absent.example is not registered" in partly.err

    def test_forget_waits_for_a_concurrent_run(self, cli, ledger, pair, tmp_path):
        with account_lock(tmp_path / "state", **HERE, on_wait=lambda holder: None):
            process = cli.start("ledger", "forget", "--force", "*", stdout=-1, stderr=-1)
            assert b"waiting for another register" in process.stderr.readline()
            assert known(ledger) == list(pair)
        process.communicate(timeout=20)
        assert process.returncode == 0
        assert known(ledger) == []


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize("rest", ["| head -c 10", ">&-", "> /dev/full"])
def test_registrations_that_cannot_be_printed_are_not_forgotten(
    cli, ledger, make_registration, rest
):
    many = [make_registration(f"d{number}.example") for number in range(300)]
    with ledger() as opened:
        opened.record(many)
    command = shlex.join(cli.command("ledger", "forget", "--force", "*", "--format", "json"))
    done = subprocess.run(
        ["sh", "-c", f"{command} {rest}"],
        cwd=cli.home, env=cli.environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert '"code": "output"' in done.stderr
    assert "Traceback" not in done.stderr
    assert len(known(ledger)) == 300


def test_the_history_by_domain_and_time(cli, ledger, make_registration, tmp_path):
    old, new = make_registration("sold.example"), make_registration("new.example")
    with ledger(days_ago=40) as opened:
        opened.record([old])
    with ledger() as opened:
        opened.forget([old])
        opened.record([new])
    for words, status, expected in (
        (["*.example"], 0, ["sold imported", "sold forgotten", "new imported"]),
        (["SOLD.example"], 0, ["sold imported", "sold forgotten"]),
        (["--since", "30d"], 0, ["sold forgotten", "new imported"]),
        (["--since", date(41)[:10], "sold.example"], 0, ["sold imported", "sold forgotten"]),
        (["new.example", "odd.example"], 1, ["new imported"]),
        (["odd.example"], 1, None),
        (["--since", date(-1)[:10], "sold.example"], 1, None),
        (["--since", "soon"], 2, None),
        (["--since", "9999-12-31T23:59:59-14:00"], 2, None),
        (["--since", "9999999d"], 2, None),
    ):
        done = cli("history", "--format", "csv", *words)
        rows = [*csv.DictReader(done.out.splitlines())]
        assert done.status == status, (words, done.err)
        found = [f"{row['sign_domain'].split('.')[0]} {row['what']}" for row in rows]
        assert found == (expected or []), words
        assert ("error:" in done.err) is (expected is None), words
        assert ("odd.example is not in the history" in done.err) is (
            status == 1 and bool(expected)
        ), words
    with closing(sqlite3.connect(tmp_path / "state" / "ledger.db", isolation_level=None)) as file:
        file.execute("UPDATE event SET detail = CAST(x'ff' AS TEXT), at = 'soon'")
    assert {item["detail"] for item in cli("history", "--format", "json").json["items"]} == {
        r"\xff"
    }


class TestCopy:
    @pytest.fixture
    def there(self, postgresql):
        return ledger_url(postgresql)

    @pytest.fixture
    def full(self, ledger, make_registration, tmp_path):
        """The file of a ledger with rows of two accounts in every table."""
        old, new, gone = (make_registration(selector=name) for name in ("s1", "s2", "s0"))
        taken = make_registration("é.example", code="409", record=None, message="'; --\u202e")
        now = datetime.now(UTC)
        path = tmp_path / "state" / "ledger.db"
        for client_id in "you", "me":
            account = HERE | {"client_id": client_id}
            with Ledger.open(path, **account, actor=Actor("ann", "ops1", "register")) as opened:
                opened.note_replacements({new.key: "s1"})
                opened.commit(answered=[new, old, gone, taken], begun=[[DomainSpec("b.example")]])
                opened.note_looks({old.key: "published"})
                opened.close_keys({gone: "s1"})
                opened.note_policy("the defaults")
                mail = {old.key: ReportedMail(Counter(a=9), Counter({"2001:db8::/48": 1}))}
                opened.note_reports([DmarcReport("é", "'1'", now.date(), mail, 0, 0)])
                opened.replace_alarms([], [Alarm("b.example", "missing", now, now)])
        return path

    def rows(self, path):
        """What the file has of the account, without the IDs of rows."""
        found = {}
        with closing(sqlite3.connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            [account_id] = connection.execute("SELECT id FROM account WHERE client_id = 'me'")
            for table in TABLES:
                query = f"SELECT * FROM {table} WHERE account_id = ?"
                order = " ORDER BY id" if table in ("registration", "open_request", "event") else ""
                each = map(dict, connection.execute(query + order, [account_id["id"]]))
                found[table] = [
                    {name: row[name] for name in row if name not in ("id", "account_id")}
                    for row in each
                ]
        assert all(found.values())
        return found

    @pytest.mark.slow
    def test_there_and_back_each_row_is_the_same(self, cli, full, there):
        before = self.rows(full)
        done = cli("ledger", "copy", "--to", there)
        assert (done.status, done.out) == (0, "")
        assert "copied registration 3, open_request 1, history 2, closed_key 1, alarm 1, event" in (
            done.err
        )
        assert f"`ledger: {there}`" in done.err
        assert self.rows(full) == before
        shown = cli("history", "--format", "json").json
        full.rename(cli.home / "old.db")
        assert cli("history", "--format", "json", "--ledger", there).json == shown
        again = cli("ledger", "copy", "--to", full, "--ledger", there)
        assert (again.status, "remove `ledger` from" in again.err) == (0, True)
        assert self.rows(full) == before
        for words in (["--to", full, "--ledger", there], ["--to", there]):
            refused = cli("ledger", "copy", *words)
            assert refused.status == 2
            assert "has this account already (registration 3," in refused.err
        assert self.rows(full) == before

    @pytest.mark.slow
    def test_what_cannot_be_copied_as_a_whole_is_not_copied(self, cli, full, there):
        with closing(sqlite3.connect(full, isolation_level=None)) as connection:
            connection.execute("UPDATE closed_key SET key_len = 'many'")
        done = cli("ledger", "copy", "--to", there)
        assert (done.status, done.err.count("error:")) == (4, 1)
        assert cli("list", "--ledger", there).status == 1
        with closing(sqlite3.connect(full, isolation_level=None)) as connection:
            connection.execute("UPDATE closed_key SET key_len = 2048")
        assert cli("ledger", "copy", "--to", there).status == 0

    @pytest.mark.slow
    def test_copies_in_opposite_directions_do_not_wait_for_each_other(
        self, cli, full, there, tmp_path
    ):
        """Both lock the file first: who waits for it does not hold the database."""
        lock = HERE | {"on_wait": pytest.fail, "purpose": "rotate", "patience": 0.0}
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        for words, status in (["--to", there], 0), (["--to", full, "--ledger", there], 2):
            database = Database(there)
            with account_lock(tmp_path / "state", **lock):
                copying = cli.start("ledger", "copy", *words, **streams)
                assert "waiting for another rotate run" in copying.stderr.readline()
                with database.lock(**lock):
                    database.disconnect()
            _, said = copying.communicate(timeout=30)
            assert (copying.returncode, "this account already" in said) == (status, status == 2)

    def test_a_target_that_is_no_ledger_is_left_alone(self, cli, full, there):
        (cli.home / "letter.txt").write_text("Dear all")
        words = ["--to", "letter.txt", "--ledger", there]
        for to in words, ["--to", "new.db"], ["--to", "http://a.example/b"]:
            assert cli("ledger", "copy", *to).status == 2, to
        assert (cli.home / "letter.txt").read_text() == "Dear all"
        empty = cli("ledger", "copy", "--to", "new.db", "--ledger", there)
        assert (empty.status, "has nothing of this account" in empty.err) == (1, True)
