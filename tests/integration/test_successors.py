"""Successors on the command line: registered in time, or refused; and what they stand for."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from dkimctl.ledger.ledger import Ledger
from documents import example
from ledgers import histories_of

PAST, FUTURE = "2026-01-01T00:00+09:00", "2099-01-01T00:00+09:00"
SUCCESSOR = (
    f"{{sign_domain: example.com, selector: s2, key_len: 2048, replaces: s1, start_date: {FUTURE}}}"
)
UNAWARE = SUCCESSOR.replace("replaces: s1, ", "")
SUCCESSOR_LATE = SUCCESSOR.replace(FUTURE, PAST)


@pytest.fixture
def silent(registering, make_answer):
    """Have that service answer 504, or no longer."""

    def silent(is_silent=True):
        no_answer = make_answer(504, b"{}", headers={"Retry-After": "0"})
        registering.on_request = lambda request: no_answer if is_silent else None

    return silent


class TestLate:
    @pytest.mark.parametrize("words", [(), ("--dry-run",)])
    def test_a_late_successor_is_refused_and_nothing_is_sent(self, cli, registering, words):
        late = "".join(
            f"- {SUCCESSOR_LATE}\n".replace("example.com", f"d{number}.example")
            for number in range(7)
        )
        done = cli("register", "-", *words, stdin=f"- example.net\n{late}")
        assert (done.status, done.out) == (2, "")
        assert "7 successors would sign at once, before DNS has the record" in done.err
        assert "d0.example (selector s2), d1.example (selector s2)" in done.err
        assert "hint: get specs with a new start_date from `dkimctl rotate > succ" in done.err
        assert registering.requests == []

    def test_one_that_was_registered_in_time_stays_registered(self, cli, registering):
        assert cli("register", "-", stdin=f"- {SUCCESSOR}").status == 0
        for words in (), ("--dry-run",):
            done = cli("register", "-", *words, stdin=f"- {SUCCESSOR_LATE}")
            assert done.status == 1, "it differs in its start_date, and is not refused"
            assert "differs" in done.err + done.out

    def test_one_that_was_sent_without_an_answer_is_settled(self, cli, silent):
        silent()
        assert cli("register", "-", stdin=f"- {SUCCESSOR}").status == 4
        silent(False)
        done = cli("register", "-", "--format", "json", stdin=f"- {SUCCESSOR_LATE}")
        assert [item["outcome"] for item in done.json["items"]] == ["created"]


class TestReplacements:
    """The ledger learns from the file which key is whose successor."""

    @pytest.fixture
    def replaced(self, tmp_path, registering, cli):
        cli.environment["DKIMCTL_STATE_DIR"] = str(tmp_path / "state")
        account = {
            "base_url": cli.environment["DKIMCTL_BASE_URL"],
            "client_id": cli.environment["DKIMCTL_CLIENT_ID"],
        }

        def replaced() -> dict[str, str | None]:
            path = tmp_path / "state" / "ledger.db"
            with Ledger.open_existing(path, **account) as ledger:
                histories = histories_of(ledger)
            return {key.selector: one.replaces for key, one in histories.items() if one.replaces}

        return replaced

    def test_a_new_successor_is_noted(self, cli, registering, replaced):
        done = cli("register", "-", stdin=f"- {SUCCESSOR}")
        assert (done.status, "URGENT" in done.err, replaced()) == (0, False, {"s2": "s1"})

    @pytest.mark.parametrize("failure", ["no answer", "no service"])
    def test_it_is_noted_before_it_is_sent(self, cli, silent, replaced, failure):
        silent()
        gone = {"DKIMCTL_AUTH_URL": "http://127.0.0.1:1"} if failure == "no service" else {}
        assert cli("register", "-", stdin=f"- {SUCCESSOR}", env=gone).status == 4
        silent(False)
        assert cli("register", "-", stdin=f"- {UNAWARE}").status == 0
        assert replaced() == {"s2": "s1"}, "although this file did not tell it"

    def test_a_file_teaches_a_ledger_that_has_the_key(self, cli, registering, replaced):
        assert cli("register", "-", stdin=f"- {UNAWARE}").status == 0
        assert replaced() == {}
        sent = len(registering.requests)
        assert cli("register", "-", "--dry-run", stdin=f"- {SUCCESSOR}").status == 0
        assert replaced() == {}
        assert cli("register", "-", stdin=f"- {SUCCESSOR}").status == 0
        assert replaced() == {"s2": "s1"}
        assert len(registering.requests) == sent

    def test_a_refused_file_teaches_nothing(self, cli, replaced):
        other = SUCCESSOR.replace("s2", "s3")
        done = cli("register", "-", stdin=f"- {SUCCESSOR_LATE}\n- {other}")
        assert (done.status, replaced()) == (2, {})


class TestClock:
    def test_a_key_that_signs_by_the_services_clock_alone_is_urgent(self, cli, registering):
        registering.regist_date = "2099-01-01T00:00:00+09:00"
        done = cli("register", "-", "--format", "json", stdin=f"- {SUCCESSOR}")
        assert done.status == 0
        warning = json.loads(done.err)["warnings"][-1]
        assert warning["code"] == "clock"
        assert warning["message"].startswith("URGENT: 1 key signs already, before")
        assert "example.com (selector s2)" in warning["message"]
        assert "dkimctl check-dns" in warning["hint"]
        again = cli("register", "-", "--format", "json", stdin=f"- {SUCCESSOR}")
        assert "warnings" not in json.loads(again.err), "it was told when it was new"

    def test_a_late_successor_whose_first_request_had_no_answer_is_urgent(self, cli, silent):
        """It is sent again, as it may be registered; if it was not, it is now."""
        silent()
        assert cli("register", "-", stdin=f"- {SUCCESSOR}").status == 4
        silent(False)
        done = cli("register", "-", "--format", "json", stdin=f"- {SUCCESSOR_LATE}")
        assert done.status == 0
        assert [one["code"] for one in json.loads(done.err)["warnings"]][-1] == "clock"

    @pytest.mark.parametrize("days", [-30, 30])
    def test_no_successor_is_sent_while_the_clocks_differ(self, cli, registering, days):
        registering.date = {"Date": http_date(days)}
        assert cli("register", "-", stdin="- {sign_domain: example.net, key_len: 2048}").status == 0
        done = cli("register", "-", stdin=f"- {SUCCESSOR}")
        assert (done.status, done.out) == (1, "")
        assert "this machine's clock says" in done.err
        assert "timedatectl" in done.err
        assert [entry["sign_domain"] for entry in registering.entries] == ["example.net"]
        registering.date = {"Date": ""}
        assert cli("register", "-", stdin=f"- {SUCCESSOR}").status == 0, "a person has asked for it"

    def test_a_slow_clock_does_not_antedate_what_the_service_tells(self, cli, registering, state):
        """Else a key that it has just enabled would seem to sign for long."""
        entry = "- {{sign_domain: example.com, selector: s1, key_len: 2048, enable: {}}}".format
        assert cli("register", "-", stdin=entry("false")).status == 0
        registering.code, registering.date = "409", {"Date": http_date(30)}
        assert cli("register", "-", "--refresh", stdin=entry("true")).status == 0
        with Ledger.open_existing(
            state / "ledger.db",
            base_url=cli.environment["DKIMCTL_BASE_URL"],
            client_id=cli.environment["DKIMCTL_CLIENT_ID"],
        ) as ledger:
            [history] = histories_of(ledger).values()
        assert history.enabled_at is not None
        assert history.enabled_at > datetime.now(UTC) + timedelta(days=29)


def http_date(days: int) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(days=days), usegmt=True)


class TestAgain:
    """The same file again and again, while its keys are replaced."""

    def test_the_form_of_the_readme_stands_for_the_current_key(self, cli):
        def selectors(*words) -> list[str]:
            done = cli("register", "--sandbox", *words, "--format", "json")
            assert done.status == 0, done.err
            return [item["selector"] for item in done.json["items"]]

        form = cli.write("domains.yaml", example("selector: s2027", "yaml"))
        begun = "{sign_domain: example.com, key_len: 2048, start_date: 2026-01-01T00:00+09:00}"
        [old] = selectors(cli.write("begun.yaml", f"- {begun}\n"))
        cli("rotate", "--sandbox", "--older-than", "0d", "--output", "successors.yaml")
        [new] = selectors("successors.yaml")
        assert selectors(form)[0] == old, "which still signs"
        gone = cli.write("old.yaml", f"- {{sign_domain: example.com, selector: {old}}}\n")
        assert cli("ledger", "forget", "--sandbox", "--force", gone).status == 0
        assert selectors(form)[0] == new
        assert selectors(form, "--refresh")[0] == new
        assert selectors(form, "--dry-run")[0] == new

    @pytest.mark.parametrize("words", [(), ("--dry-run",)])
    def test_warnings_are_about_what_is_sent(self, cli, words):
        entry = "- {{sign_domain: {}, enable: true, key_len: 1024}}\n".format
        cli("register", "--sandbox", "-", stdin=entry("a.example"))
        again = cli("register", "--sandbox", "-", *words, stdin=entry("a.example"))
        assert "warning" not in again.err
        both = entry("a.example") + entry("b.example")
        more = cli("register", "--sandbox", "-", *words, stdin=both)
        assert more.err.count("for 1 domain (b.example)") == 2, "of its length and its start"


class TestNothingDue:
    """`rotate` writes an empty list, and the commands after it have nothing to do."""

    @pytest.mark.parametrize(
        ("words", "out", "said"),
        [
            (("register",), "", "nothing to do"),
            (("register", "--dry-run"), "", "nothing to do"),
            (("show-dns",), "", "no records"),
            (("show-dns", "--format", "json"), '{"items": [\n], "count": 0, "total": 0}\n', "{}"),
            (("check-dns", "--wait", "30m"), "", "nothing to check"),
            (("rotate",), "[]\n", "nothing is due"),
            (("rotate", "--retired", "--format", "nsupdate"), "", "nothing is retired"),
            (("ledger", "forget"), '{"items": [\n], "count": 0, "total": 0}\n', "nothing to do"),
        ],
    )
    def test_an_empty_spec_file_selects_nothing_and_exits_with_0(self, cli, words, out, said):
        cli("register", "--sandbox", "-", stdin="- {sign_domain: example.com, selector: s1}")
        due = cli("rotate", "--sandbox", "--output", "successors.yaml")
        assert "nothing is due" in due.err
        done = cli(*words, "--sandbox", "successors.yaml")
        assert (done.status, said in done.err) == (0, True), done.err
        assert done.out.endswith(out)
        assert bool(done.out) == bool(out)
        assert "nothing is registered" not in done.err

    def test_its_output_replaces_that_of_the_time_before(self, cli):
        cli.write("empty.yaml", "[]")
        cli.write("dkim.nsupdate", "update delete example.com. IN TXT\nsend\n")
        words = ("--format", "nsupdate", "--output", "dkim.nsupdate")
        assert cli("show-dns", "--sandbox", "empty.yaml", *words).status == 0
        assert (cli.home / "dkim.nsupdate").read_text() == ""

    def test_beside_other_words_it_selects_nothing_more(self, cli):
        cli.write("empty.yaml", "[]")
        done = cli("show-dns", "--sandbox", "empty.yaml", "example.com")
        assert (done.status, done.out) == (1, "")
        assert "nothing is registered in the profile sandbox that matches example.com" in done.err
