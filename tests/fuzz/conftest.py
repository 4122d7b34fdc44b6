"""Fuzzing: the number of examples, their time limits, and the command line in this process.

`pytest tests/fuzz` takes half a minute and tries the same examples each time;
`DKIMCTL_FUZZ=100000 pytest tests/fuzz` tries that many new ones per test. Nothing is stored between
runs: turn a failure into a test of its own.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from commands import Done

_HERE = Path(__file__).parent
_LONG = os.environ.get("DKIMCTL_FUZZ")

settings.register_profile(
    "fuzz",
    max_examples=250,
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz-long",
    settings.get_profile("fuzz"),
    max_examples=int(_LONG or 100_000),
    derandomize=False,
)

# Limits of one example in seconds: of CPU time, and until it is interrupted.
_WORK = 2.0
_WAIT = 30.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set the number of examples of every property here, and the time limits of each example."""
    profile = settings.get_profile("fuzz-long" if _LONG else "fuzz")
    ours = [
        item
        for item in items
        if item.path.parent == _HERE and is_hypothesis_test(getattr(item, "obj", None))
    ]
    for item in ours:
        item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.filterwarnings("ignore:Generating overly large repr"))
    for test in {item.obj for item in ours}:
        profile(test)
        test.hypothesis.inner_test = _bounded(test.hypothesis.inner_test)


def _bounded(test: Callable[..., None]) -> Callable[..., None]:
    """The same test, but it fails if one example takes too long."""

    @functools.wraps(test)
    def run(*arguments: object, **named: object) -> None:
        gc.disable()  # a collection takes longer with each example
        begun = time.process_time()
        try:
            with _ended_after(_WAIT):
                test(*arguments, **named)
        finally:
            gc.enable()
        took = time.process_time() - begun
        assert took < _WORK, f"one example took {took:.1f} s of the processor"

    return run


@contextlib.contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """Fail after this time; without such timers (on Windows), the run hangs instead."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def end(*_: object) -> None:
        pytest.fail(f"one example did not end within {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Buffer(io.BytesIO):
    """The bytes below a standard stream."""

    name = "<stream>"


class CommandLine:
    """`dkimctl` in this process, with `state` as its state directory."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def __call__(self, *words: object, stdin: bytes = b"") -> Done:
        """Run a command line. Any outcome but a defect of dkimctl is fine."""
        from dkimctl.cli.main import run

        streams = [io.TextIOWrapper(Buffer(data), "utf-8") for data in (stdin, b"", b"")]
        before = sys.stdin, sys.stdout, sys.stderr
        sys.stdin, sys.stdout, sys.stderr = streams
        try:
            status = run([*map(str, words)])
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
        for stream in streams[1:]:
            stream.flush()
        out, err = (stream.buffer.getvalue().decode("utf-8") for stream in streams[1:])
        assert "a defect in dkimctl" not in err, err
        assert "Traceback" not in err, err
        return Done(status, out, err)


@pytest.fixture(scope="session")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line in a home of its own."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DKIMCTL_")]:
            patch.delenv(name)
        for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, str(home))
        patch.setenv("DKIMCTL_STATE_DIR", str(home / "state"))
        # A command freezes its objects for the rest of its process, which is long here.
        patch.setattr(gc, "freeze", lambda: None)
        (home / "state").mkdir()
        yield CommandLine(home / "state")
