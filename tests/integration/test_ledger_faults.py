"""If the disk or the ledger fails, nothing is sent, or nothing is lost."""

from __future__ import annotations

import json

import pytest


def specs(count: int) -> str:
    return "".join(f"- {{sign_domain: d{n}.example, selector: s1}}\n" for n in range(count))


@pytest.fixture
def ledger(cli):
    """Where the ledger is."""
    cli.environment["DKIMCTL_STATE_DIR"] = str(cli.home / "state")
    return cli.home / "state" / "ledger.db"


@pytest.fixture
def sent(registering):
    """The domains that the service received."""
    return lambda: [entry["sign_domain"] for entry in registering.entries]


class TestAFullDisk:
    @pytest.fixture
    def state(self, cli, small_disk):
        state = small_disk.path / "state"
        cli.environment["DKIMCTL_STATE_DIR"] = str(state)
        return state

    def test_from_the_start_nothing_is_sent(self, cli, registering, small_disk, state):
        small_disk.fill(leaving=0)
        done = cli("register", "-", stdin=specs(3))
        assert (done.status, done.out) == (2, "")
        assert str(state) in done.err
        assert "hint: free" in done.err
        assert registering.requests == []
        small_disk.relieve()
        assert cli("register", "-", stdin=specs(3)).status == 0

    def test_during_the_run_stops_it_in_time_and_loses_nothing(
        self, cli, registering, small_disk, state, sent
    ):
        words = ("register", "-", "--batch-size", 10, "--concurrency", 4, "--format", "json")
        small_disk.fill(leaving=6_500_000)
        stopped = cli(*words, stdin=specs(3000))
        assert stopped.status == 4
        (error,) = json.loads(stopped.err)["errors"]
        assert "not enough space for the ledger" in error["message"]
        assert "free space at" in error["hint"]
        outcomes = [item["outcome"] for item in stopped.json["items"]]
        done = outcomes.count("created")
        assert outcomes == ["created"] * done + ["pending"] * (3000 - done)
        assert done == len(sent()) > 100
        shown = cli("show-dns", "--format", "value")
        assert len(shown.out.splitlines()) == done
        cli.environment["DKIMCTL_STATE_DIR"] = str(cli.home / "state")
        (cli.home / "state").mkdir()
        for path in state.iterdir():  # as the hint says: move it elsewhere
            (cli.home / "state" / path.name).write_bytes(path.read_bytes())
        again = cli(*words, stdin=specs(3000))
        assert again.status == 0
        assert len(sent()) == len(set(sent())) == 3000


def test_a_read_only_state_directory_is_2_for_writers_and_works_for_readers(
    cli, registering, small_disk, sent
):
    cli.environment["DKIMCTL_STATE_DIR"] = str(small_disk.path / "state")
    assert cli("register", "-", stdin=specs(2)).status == 0
    small_disk.forbid_writing()
    done = cli("register", "-", stdin=specs(3))
    assert (done.status, done.out) == (2, "")
    assert "DKIMCTL_STATE_DIR" in done.err
    assert len(sent()) == 2
    shown = cli("show-dns", "--format", "value")
    assert (shown.status, len(shown.out.splitlines())) == (0, 2)
    planned = cli("register", "-", "--dry-run", "--format", "json", stdin=specs(3))
    assert [item["outcome"] for item in planned.json["items"]] == ["exists", "exists", "pending"]


def test_a_damaged_ledger_is_set_aside_and_only_what_has_a_selector_is_sent_again(
    cli, registering, ledger, sent
):
    text = specs(2) + "- chosen.example\n"
    assert cli("register", "-", stdin=text).status == 0
    registering.entries.clear()
    ledger.write_bytes(before := b"not a database, by far" + ledger.read_bytes()[22:])
    reader = cli("show-dns")
    assert (reader.status, "damaged" in reader.err, ledger.read_bytes()) == (2, True, before)
    done = cli("register", "-", stdin=text)
    assert (done.status, done.out, sent()) == (2, "", [])
    (aside,) = ledger.parent.glob("ledger.db.damaged-*")
    assert (aside.read_bytes(), ledger.exists()) == (before, False)
    assert f"quarantined as {aside}" in done.err
    again = cli("register", "-", "--format", "json", stdin=text)
    assert [item["outcome"] for item in again.json["items"]] == ["created"] * 2 + ["unknown"]
    assert (again.status, "damaged ledger" in again.err) == (4, True)
    assert sorted(sent()) == ["d0.example", "d1.example"]
    assert cli("register", "-", "--retry-unknown", stdin=text).status == 0
    assert sent()[2:] == ["chosen.example"]
