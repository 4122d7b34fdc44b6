"""How a run handles Ctrl-C, SIGTERM and a closed terminal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading

import pytest

from dkimctl.cli.terminal import interrupting, stopping

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


@pytest.mark.parametrize("number", SIGNALS)
def test_each_signal_cancels_what_asyncio_waits_for(number):
    """Also within a block in which the first signal stops."""
    seen = []

    async def wait():
        try:
            signal.raise_signal(number)
            seen.append("not raised here, where a library may take it for an error of its own")
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with stopping(lambda: seen.append("stop")), interrupting(), pytest.raises(KeyboardInterrupt):
        asyncio.run(wait())
    assert seen[1:] == ["cancelled"]


@pytest.mark.parametrize("number", SIGNALS[1:])
def test_a_signal_interrupts_where_ctrl_c_is_ignored(number):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupting(), pytest.raises(KeyboardInterrupt):
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
