"""A kill at any moment loses no commit."""

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


def test_a_kill_loses_no_commit(start, read):
    reported = {"begun": set(), "answered": set()}
    for _ in range(5):
        first = len(reported["begun"])
        process = start(COMMIT_FOR_EVER)
        process.stdin.write(f"{first}\n")
        process.stdin.flush()
        lines = list(itertools.islice(process.stdout, 25 + first % 7))
        process.kill()
        for line in [*lines, *process.stdout]:
            if line.endswith("\n"):
                word, number = line.split()
                reported[word].add(f"d{number}.example")
        process.wait()
        with read() as ledger:
            stored = {registration.sign_domain for registration in ledger.all()}
            in_flight = {intent.sign_domain for intent in ledger.intents()}
        assert reported["answered"] <= stored
        assert reported["begun"] <= stored | in_flight
        assert len(stored - reported["answered"]) <= 5, "at most one per kill was not reported"
        assert not stored & in_flight
    assert len(reported["answered"]) > 50


def test_every_commit_reaches_the_disk_before_it_returns(write, path, account):
    write().close()
    connection, _ = open_for_writing(path, **account)
    settings = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "fullfsync")
    ]
    connection.close()
    assert settings == ["wal", 2, 1]
