"""`dkimctl` in forks of a process that has imported everything: the real `main`, in a tenth of the
time that an interpreter takes to start.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

LIMIT = 120.0  # seconds that a command may take
_LENGTH = 8  # octets before a request
# These count at the start of an interpreter or process, so that a fork cannot change them.
_AT_START = ("PYTHON", "LANG", "LC_", "LD_")
# libfaketime fails in the call that time.sleep makes, unless it fakes the monotonic clock as well;
# then those who wait for a lock wait for years.
SLEEP = """
import threading, time
time.sleep = lambda seconds: threading.Event().wait(seconds) and None
"""


class Done(NamedTuple):
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class CommandServer:
    """Runs `dkimctl` in forks, several at a time if several threads ask.

    `prefix` is the beginning of its command. A fork first runs the code in the variable AT_START.
    """

    def __init__(self, environment: Mapping[str, str], prefix: Sequence[str] = ()) -> None:
        self._environment = environment
        self._socket, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            words = [*prefix, sys.executable, str(Path(__file__)), str(theirs.fileno())]
            self._process = subprocess.Popen(
                words, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether a command in a fork has what `environment` says for the start of a process."""
        names = self._environment.keys() | environment.keys()
        return not any(
            name.startswith(_AT_START) and self._environment.get(name) != environment.get(name)
            for name in names
        )

    def run(
        self, words: Sequence[object], stdin: bytes, home: Path, environment: Mapping[str, str]
    ) -> Done:
        """Run a command with this input, in this directory and environment."""
        # The fork has the outer ends of these pipes: standard streams, and what it ends with.
        (read_in, write_in), (read_out, out), (read_err, err), (ended, end) = (
            os.pipe() for _ in range(4)
        )
        unset = [*(self._environment.keys() - environment.keys())]
        request = json.dumps([[*map(str, words)], str(home), unset, dict(environment)]).encode()
        with self._lock:
            head = len(request).to_bytes(_LENGTH, "big")
            socket.send_fds(self._socket, [head], [read_in, out, err, end])
            self._socket.sendall(request)
        for descriptor in (read_in, out, err, end):
            os.close(descriptor)
        outputs: dict[int, bytes] = {}

        def read(descriptor: int) -> None:
            with os.fdopen(descriptor, "rb") as stream:
                outputs[descriptor] = stream.read()

        def write() -> None:
            with contextlib.suppress(BrokenPipeError), os.fdopen(write_in, "wb") as stream:
                stream.write(stdin)

        threads = [threading.Thread(target=read, args=(which,)) for which in (read_out, read_err)]
        threads.append(threading.Thread(target=write))
        for thread in threads:
            thread.start()
        with os.fdopen(ended, encoding="ascii") as status:
            pid = int(status.readline())
            timer = threading.Timer(LIMIT, os.kill, (pid, signal.SIGKILL))
            timer.start()
            try:
                code = int(status.readline())
            finally:
                timer.cancel()
        for thread in threads:
            thread.join()
        result = Done(code, outputs[read_out].decode(), outputs[read_err].decode())
        assert "Traceback" not in result.err, result.err
        return result

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


def _serve(requests: socket.socket) -> None:
    """Fork for each request until the client closes its end."""
    _import_all()
    while True:
        head, descriptors, _, _ = socket.recv_fds(requests, _LENGTH, 4)
        if not head:
            return
        body = b""
        while len(body) < int.from_bytes(head, "big"):
            body += requests.recv(1 << 20)
        # A fork of its own waits for the command, so that commands can run at the same time.
        waiter = os.fork()
        if not waiter:
            requests.close()
            if not os.fork():
                _wait_for_command(body, descriptors)
            os._exit(0)
        os.waitpid(waiter, 0)
        for descriptor in descriptors:
            os.close(descriptor)


def _wait_for_command(body: bytes, descriptors: Sequence[int]) -> None:
    """Run the command in another fork; then tell its pid, and its exit status when it has ended."""
    *streams, end = descriptors
    pid = os.fork()
    if not pid:
        os.close(end)
        _run(body, streams)
    for descriptor in streams:
        os.close(descriptor)
    os.write(end, f"{pid}\n".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(end, f"{status}\n".encode())
    os._exit(0)


def _import_all() -> None:
    """Import what commands import when they need it, as objects that no fork collects."""
    import gc
    import importlib
    import pkgutil

    import dkimctl

    for module in pkgutil.walk_packages(dkimctl.__path__, "dkimctl."):
        if module.name != "dkimctl.__main__":
            importlib.import_module(module.name)
    for name in ("dns.message", "dns.rdtypes.ANY.TXT", "httpx", "rich.table", "yaml"):
        importlib.import_module(name)
    gc.freeze()


def _run(body: bytes, streams: Sequence[int]) -> None:
    """Be the command `dkimctl` of a request."""
    import random

    from dkimctl.__main__ import main

    words, home, unset, environment = json.loads(body)
    status = 70
    try:
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
            os.close(descriptor)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        os.chdir(home)
        code = environment.pop("AT_START", "")
        for name in unset:  # not what `prefix` has set
            os.environ.pop(name, None)
        os.environ.update(environment)
        time.tzset()
        random.seed()
        exec(code, {})
        sys.argv = ["dkimctl", *words]
        status = main()
    except SystemExit as error:
        status = error.code
    except BaseException:  # noqa: BLE001 - the fork ends here
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


if __name__ == "__main__":
    if any(name.startswith("FAKETIME") for name in os.environ):
        exec(SLEEP)
    _serve(socket.socket(fileno=int(sys.argv[1])))
