"""A kill at any moment loses nothing that was committed."""

from __future__ import annotations

import itertools

from dkimctl.ledger.opening import open_for_writing

COMMIT_FOR_EVER = """
start = int(sys.stdin.readline())
with Ledger.open(path, **ACCOUNT) as ledger:
    for number in range(start, 10**9):
        ledger.commit(begun=[[DomainSpec(f"d{number}.example", "s")]])
        print("begun", number, flush=True)
        ledger.commit(answered=[answer(number)], settled=[key_of(f"d{number}.example", "s")])
        print("answered", number, flush=True)
"""


def test_what_was_committed_before_a_kill_is_there_after_it(start, read):
    told = {"begun": set(), "answered": set()}
    for _ in range(5):
        first = len(told["begun"])
        process = start(COMMIT_FOR_EVER)
        process.stdin.write(f"{first}\n")
        process.stdin.flush()
        lines = list(itertools.islice(process.stdout, 25 + first % 7))
        process.kill()
        for line in [*lines, *process.stdout]:
            if line.endswith("\n"):
                word, number = line.split()
                told[word].add(f"d{number}.example")
        process.wait()
        with read() as ledger:
            kept = {found.sign_domain for found in ledger.all()}
            in_flight = {intent.sign_domain for intent in ledger.intents()}
        assert told["answered"] <= kept
        assert told["begun"] <= kept | in_flight
        assert len(kept - told["answered"]) <= 5, "at most one a kill was not told"
        assert not kept & in_flight
    assert len(told["answered"]) > 50


def test_every_commit_reaches_the_disk_before_it_returns(write, path, account):
    write().close()
    connection, _ = open_for_writing(path, **account)
    settings = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "fullfsync")
    ]
    connection.close()
    assert settings == ["wal", 2, 1]
