"""How a run handles Ctrl-C, SIGTERM and a closed terminal."""

from __future__ import annotations

import contextlib
import signal
import threading

import pytest

from dkimctl.cli.terminal import ending_like_ctrl_c, stopping

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@pytest.fixture(autouse=True)
def handlers():
    """The signal handlers before the test, which are restored after it."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def calls():
    return []


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_stops_and_later_ones_interrupt(number, calls, handlers):
    with contextlib.suppress(KeyboardInterrupt), stopping(lambda: calls.append("stop")):
        signal.raise_signal(number)
        assert calls == ["stop"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        signal.raise_signal(number)
    assert calls == ["stop"]
    assert {number: signal.getsignal(number) for number in SIGNALS} == handlers


@pytest.mark.parametrize("number", SIGNALS)
def test_an_ignored_signal_stays_ignored(number, calls):
    signal.signal(number, signal.SIG_IGN)
    with stopping(lambda: calls.append("stop")):
        signal.raise_signal(number)
    assert calls == []
    assert signal.getsignal(number) is signal.SIG_IGN


@pytest.mark.parametrize("number", SIGNALS[1:])
def test_a_signal_does_what_ctrl_c_does_or_interrupts_where_that_is_ignored(number, calls):
    signal.signal(signal.SIGINT, lambda *_: calls.append("Ctrl-C"))
    with ending_like_ctrl_c():
        signal.raise_signal(number)
    assert calls == ["Ctrl-C"]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ending_like_ctrl_c(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def test_outside_the_main_thread_nothing_changes(handlers):
    seen = []

    def run():
        with stopping(lambda: None):
            seen.append({number: signal.getsignal(number) for number in SIGNALS})

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [handlers]
