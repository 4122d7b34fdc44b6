"""`dkimctl service client list` with a data file that another program has changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing

DATA = ("--data", "service.db")


def _plant(cli, client_id: str, state: str) -> None:
    with closing(sqlite3.connect(cli.home / "service.db")) as connection, connection:
        row = (client_id, b"", state, "2026\x1b[2J")
        connection.execute("INSERT INTO clients VALUES (?, ?, ?, ?)", row)


def test_control_characters_do_not_reach_the_terminal(cli):
    cli("service", "client", "create", "good", *DATA)
    _plant(cli, "evil\x1b]0;x\x07\n\tx", "active")
    done = cli("service", "client", "list", *DATA)
    assert done.status == 0
    evil, good = done.out.splitlines()
    assert evil == "evil\\x1b]0;x\\x07\\x0a\\x09x\tactive\t2026\\x1b[2J"
    assert good.startswith("good\tactive\t")


def test_an_unknown_state_is_a_usage_error(cli):
    cli("service", "client", "create", "good", *DATA)
    _plant(cli, "odd\x1b", "bogus\x1b")
    done = cli("service", "client", "list", *DATA)
    assert (done.status, done.out) == (2, "")
    assert "invalid client 'odd\\x1b'" in done.err
