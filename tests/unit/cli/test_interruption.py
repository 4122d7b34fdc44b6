"""What Ctrl-C, SIGTERM and a closed terminal do to a run."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading

import pytest

from dkimctl.cli.interruption import stopping

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@pytest.fixture(autouse=True)
def handlers():
    """The handlers as they were before a test; a test that changes them does no harm."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def calls():
    return []


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_stops_in_order_and_the_second_at_once(number, calls):
    with stopping(lambda: calls.append("stop")):
        signal.raise_signal(number)
        assert calls == ["stop"]
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
    assert calls == ["stop"]


def test_the_second_may_be_another_signal(calls):
    with stopping(lambda: calls.append("stop")):
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert calls == ["stop"]


def test_without_a_signal_nothing_is_stopped(calls):
    with stopping(lambda: calls.append("stop")):
        pass
    assert calls == []


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_the_handlers_from_before_are_put_back(handlers, calls, error):
    with contextlib.suppress(ValueError, KeyboardInterrupt), stopping(lambda: calls.append(1)):
        assert all(signal.getsignal(number) != handlers[number] for number in SIGNALS)
        if error is not None:
            raise error
    assert {number: signal.getsignal(number) for number in SIGNALS} == handlers


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_is_ignored_stays_ignored(number, calls):
    signal.signal(number, signal.SIG_IGN)
    with stopping(lambda: calls.append("stop")):
        signal.raise_signal(number)
    assert calls == []
    assert signal.getsignal(number) is signal.SIG_IGN


def test_outside_the_main_thread_nothing_is_changed(handlers):
    found = []

    def run():
        with stopping(lambda: None):
            found.append({number: signal.getsignal(number) for number in SIGNALS})

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [handlers]


# Works in a thread while the main thread waits, as a registration does.
_PROGRAM = """
import threading, time
from dkimctl.cli.interruption import stopping

class Run:
    stopped = False

def work():
    while not Run.stopped:
        time.sleep(0.01)
    print("in flight", flush=True)
    done.wait()

done = threading.Event()
thread = threading.Thread(target=work, daemon=True)
with stopping(lambda: setattr(Run, "stopped", True)):
    thread.start()
    print("runs", flush=True)
    try:
        while thread.is_alive():
            thread.join(0.5)
    except KeyboardInterrupt:
        print("at once", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signals to one process")
@pytest.mark.parametrize("number", SIGNALS)
def test_signals_from_outside_reach_a_process_that_waits(number):
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "runs\n"
        process.send_signal(number)
        assert process.stdout.readline() == "in flight\n"
        process.send_signal(number)
        assert process.stdout.readline() == "at once\n"
        assert process.wait(10) == 0
