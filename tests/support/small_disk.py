"""A small disk that a test can fill, in a namespace of its own for users who may not mount one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from needs import NO_NAMESPACE, give_up

_IN_NAMESPACE = "DKIMCTL_IN_NAMESPACE"
_NAMESPACE = ("unshare", "-rm")


class SmallDisk:
    """A file system of 16 MiB in the directory `path`, if `mounted`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mounted = _run("mount", "-t", "tmpfs", "-o", "size=16m", "dkimctl-test", path)
        self._ballast = path / "ballast"

    def fill(self, *, leaving: int) -> None:
        """Leave this many bytes free, in whole blocks."""
        free = shutil.disk_usage(self.path).free
        self._ballast.write_bytes(bytes(max(0, free - leaving)))

    def relieve(self) -> None:
        self._ballast.unlink()

    def forbid_writing(self) -> None:
        # With `bind` for this mount alone: in a namespace, the file system's own options are fixed.
        assert _run("mount", "-o", "remount,bind,ro", self.path)

    def close(self) -> None:
        if self.mounted:
            _run("umount", "--lazy", self.path)


def run_in_namespace(test: pytest.Item) -> None:
    """Run a test as root of a new user namespace, who may mount; raises as it would."""
    if os.environ.get(_IN_NAMESPACE) or not _run(*_NAMESPACE, "true"):
        give_up(f"{NO_NAMESPACE}, nor mount a small disk")
    words = [*_NAMESPACE, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*words, test.nodeid], cwd=test.config.rootpath, capture_output=True, text=True,
        env=os.environ | {_IN_NAMESPACE: "1"},
    )  # fmt: skip
    assert "1 passed" in done.stdout, f"in a namespace of its own:\n{done.stdout}{done.stderr}"


def _run(*words: object) -> bool:
    try:
        return subprocess.run([*map(str, words)], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
