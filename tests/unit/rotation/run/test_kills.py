"""A run that is killed at any of its effects, and the one after it."""

from __future__ import annotations

import multiprocessing
import shutil
import signal

import pytest

from ledgers import histories_of
from rotation_world import World, run_until

DOMAINS = ("a.example", "b.example")


@pytest.fixture(scope="module")
def processes():
    """A server that forks processes which have imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rotation_world"])
    return context


def kill(processes, world, at):
    """Kill a run at an effect; tells whether it came so far."""
    arguments = str(world.directory), world.key, world.now, at
    process = processes.Process(target=run_until, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def outcome(world):
    """What counts, whatever the way to it: keys, closed keys, records, and who replaces whom."""
    with world.open_ledger(for_writing=False) as ledger:
        replaces = {key: one.replaces for key, one in histories_of(ledger).items() if one.replaces}
        assert ledger.intents() == []
    return world.keys(), world.closed(), world.records, world.read("service"), replaces


def registered(world):
    world.register(*DOMAINS)
    world.run()
    world.pass_time(days=180)


def replaced(world):
    registered(world)
    world.run()
    world.pass_time(days=22)


@pytest.mark.slow
@pytest.mark.parametrize("before", [registered, replaced])
def test_the_next_run_ends_as_if_nothing_had_happened(processes, tmp_path, key_records, before):
    key = key_records[2048].partition("p=")[2]
    (tmp_path / "start").mkdir()
    start = World(tmp_path / "start", key)
    before(start)

    def copy(name):
        shutil.copytree(start.directory, tmp_path / name)
        return World(tmp_path / name, key, start.now)

    undisturbed = copy("undisturbed")
    assert undisturbed.run().tasks
    at = 1
    while kill(processes, world := copy(str(at)), at):
        for again in range(3):  # and the next ones are killed, too
            kill(processes, world, 3 * again + 2)
        world.run()
        assert outcome(world) == outcome(undisturbed), at
        assert world.run().tasks == []
        at += 1
    assert at > 10


@pytest.mark.slow
def test_a_request_without_an_answer_is_settled_days_later(processes, tmp_path, key_records):
    """Killed between the request and its answer: its selector has the date of that day."""
    world = World(tmp_path, key_records[2048].partition("p=")[2])
    registered(world)
    at = 1
    while len(world.read("service")) == len(DOMAINS):
        kill(processes, world, at)
        at += 1
    assert len(world.keys()) == 2
    world.pass_time(days=2)
    world.run()
    assert world.keys() == {f"{one} {domain}" for one in ("s1", "s20270630") for domain in DOMAINS}
