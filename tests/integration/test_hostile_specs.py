"""Hostile spec files: of any content, a file of 64 MiB takes under 400 MiB and 10 s."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta

import pytest

pytest.importorskip("resource", reason="memory is measured with getrusage")

MAX_MEMORY = 400 << 20  # bytes
START = (date.today() + timedelta(days=90)).strftime("%Y-%m-%dT00:00+09:00")
MAX_TIME = 30.0  # s of CPU time: 8 on a fast machine that does nothing else
FULL, SMALL = 64 << 20, 8 << 20  # bytes

# Runs a command, and prints its exit code, its peak memory in bytes and its CPU time in seconds.
MEASURE = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
unit = 1 if sys.platform == "darwin" else 1024
print(status, usage.ru_maxrss * unit, usage.ru_utime + usage.ru_stime)
"""


def filled(size: int, start: bytes, piece: bytes, end: bytes = b"") -> bytes:
    """`piece` repeated between `start` and `end`; whole pieces only."""
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + end


def numbered(size: int, line: str) -> bytes:
    """Lines with a number each, from 0."""
    count = size // len(line.format(1_000_000).encode())
    return "".join(map(line.format, range(count))).encode()


EMOJI = "😀".encode()
# The name: the content, and the place and message of its first problem; "" if it has none.
KINDS: dict[str, tuple[int, Callable[[int], bytes], str]] = {
    "word of one emoji": (
        FULL,
        lambda size: filled(size, b"- " + EMOJI, b"a"),
        "1:3: a value, comment or gap is longer than 4 MiB",
    ),
    "small entries": (
        FULL,
        lambda size: numbered(size, "- d{}.a\n"),
        "250001:3: more than 250,000 entries",
    ),
    "as many mappings as are accepted": (
        0,
        lambda _size: "".join(
            f"- {{sign_domain: d{number}.example, selector: s{number}, key_len: 2048, "
            f"start_date: {START}, default: {number}, replaces: old-{number}}}\n"
            for number in range(250_000)
        ).encode(),
        "",
    ),
    "names in a plain list": (
        SMALL,
        lambda size: numbered(size, "d{}.a\n"),
        "250001:1: more than 250,000 entries",
    ),
    "invalid labels": (
        SMALL,
        lambda size: filled(size, b"", ("- " + "\u4e00" * 62 + ".").encode() * 4 + b"\n"),
        "1:3: an entry",
    ),
    "international names": (
        FULL,
        lambda size: numbered(size, "- 日本語の名前です{0}.この国の名前です{0}\n"),
        "more than 3,000,000 characters of internationalized labels",
    ),
    "nested": (SMALL, lambda size: filled(size, b"", b"["), "nested too deeply"),
    "one flow sequence": (
        FULL,
        lambda size: filled(size, b"x: [", b"a,", b"]"),
        '1:1: a spec file has no key "x"',
    ),
    "comments": (SMALL, lambda size: filled(size, b"", b"# a\n"), "longer than 4 MiB"),
    "aliases": (SMALL, lambda size: filled(size, b"", b"- *a\n"), "1:3: an entry must be"),
    "directives": (
        FULL,
        lambda size: b"[]\n" + numbered(size - 3, "%TAG !{}! a\n"),
        "2:1: YAML directives are not supported",
    ),
    "null characters": (FULL, lambda size: b"\0" * size, "1:1: the character U+0000"),
}


# Of the files of full size, only some are read at every change.
EVERY_TIME = ("small entries", "international names")


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.nightly)
        if size == FULL and kind not in EVERY_TIME
        else kind
        for kind, (size, *_) in KINDS.items()
    ],
)
def test_no_spec_file_takes_much_memory_or_time(kind, tmp_path):
    size, content, problem = KINDS[kind]
    path = tmp_path / "hostile.yaml"
    path.write_bytes(content(size))
    command = [sys.executable, "-m", "dkimctl", "register", "--sandbox", "--dry-run", str(path)]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *command], capture_output=True, text=True, check=True
    )
    status, memory, seconds = done.stdout.split()
    assert "Traceback" not in done.stderr
    if problem:
        assert int(status) == 2
        assert problem in done.stderr
        assert len(done.stderr) < 1 << 20
    else:
        assert int(status) == 0
        assert done.stderr.startswith("dkimctl: to create 250000\n")
    assert int(memory) < MAX_MEMORY
    assert float(seconds) < MAX_TIME
