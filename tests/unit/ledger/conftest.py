"""Ledgers on real files, other processes at them, and disks and users that cannot do all."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dkimctl.ledger import Ledger

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
_PREPARED = """
import os, sqlite3, sys
from pathlib import Path
from dkimctl.errors import LedgerError
from dkimctl.ledger import Ledger
from dkimctl.models import DnsRecord, Registration

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
path = Path(sys.argv[1])

def answer(number):
    record = DnsRecord("s._domainkey.x", "TXT", "v" * 415)
    return Registration(f"d{number}.example", "s", 2048, record=record, code="201")
"""
# Nothing can be imported afterwards: this user need not be able to read Python itself.
_UNPRIVILEGED = """
import filelock
import dkimctl.ledger.damage, dkimctl.ledger.reading, dkimctl.ledger.room, dkimctl.ledger.writing
if os.geteuid() == 0:
    try:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    except OSError:
        sys.exit(77)
"""


@pytest.fixture
def account() -> dict[str, str]:
    return ACCOUNT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.db"


@pytest.fixture
def write(path: Path) -> Callable[..., Ledger]:
    """Open the ledger to write it."""
    return lambda **options: Ledger.open(options.pop("path", path), **ACCOUNT | options)


@pytest.fixture
def read(path: Path) -> Callable[..., Ledger]:
    """Open the ledger to read it only."""
    return lambda **options: Ledger.open_existing(options.pop("path", path), **ACCOUNT | options)


@pytest.fixture
def start(path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that does something with the ledger at `path`; it ends with the test."""
    with contextlib.ExitStack() as stack:

        def start_one(program: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "-c", _PREPARED + program, path],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start_one


class SmallDisk:
    """A file system of one MiB. `ballast` is a file that can take all that is free."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *, leaving: int) -> None:
        """Leave so many bytes free; whole blocks count."""
        free = shutil.disk_usage(self.path).free
        self._ballast.write_bytes(bytes(max(0, free - leaving)))

    def relieve(self) -> None:
        self._ballast.unlink()

    def forbid_writing(self) -> None:
        _run("mount", "-o", "remount,ro", self.path)


@pytest.fixture
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk; where this process may mount none, the test runs in one that may."""
    if sys.platform != "linux":
        pytest.skip("needs a tmpfs of Linux")
    path = tmp_path / "disk"
    path.mkdir()
    if not _run("mount", "-t", "tmpfs", "-o", "size=1m", "dkimctl-test", path):
        _run_in_namespace(request)
    yield SmallDisk(path)
    _run("umount", "--lazy", path)


def _run(*words: object) -> bool:
    try:
        return subprocess.run([*map(str, words)], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def _run_in_namespace(request: pytest.FixtureRequest) -> None:
    """Run the test as root of a user namespace of its own, which may mount; then skip it here."""
    if os.environ.get("DKIMCTL_IN_NAMESPACE") or not _run("unshare", "-rm", "true"):
        pytest.skip("this user may mount no small disk, not even in a namespace of its own")
    words = ["unshare", "-rm", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*words, f"{request.path}::{request.node.name}"],
        cwd=request.config.rootpath, capture_output=True, text=True,
        env=os.environ | {"DKIMCTL_IN_NAMESPACE": "1"},
    )  # fmt: skip
    if done.returncode or "1 passed" not in done.stdout:
        pytest.fail(f"in a namespace of its own:\n{done.stdout}{done.stderr}")
    pytest.skip("passed in a namespace of its own, where a small disk could be mounted")


class Elsewhere:
    """A directory that every user may enter, and the processes of one without privileges."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, program: str, ledger: Path) -> str:
        """What a program prints that this user runs with the ledger as `path`."""
        done = subprocess.run(
            [sys.executable, "-c", _PREPARED + _UNPRIVILEGED + program, ledger],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode == 77:
            pytest.skip("this root may not become another user")
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    if sys.platform == "win32":
        pytest.skip("file modes and users are POSIX")
    # Not in pytest's own directory, which other users may not enter.
    with tempfile.TemporaryDirectory(prefix="dkimctl-test-") as name:
        Path(name).chmod(0o755)
        place = Elsewhere(Path(name) / "state")
        place.path.mkdir()
        yield place
        place.path.chmod(0o755)
