"""Room on the disk for what the service is going to answer."""

from __future__ import annotations

from pathlib import Path

from dkimctl.ledger.faults import no_space

# Measured: an answer with a 2048-bit key adds 650 to 750 bytes to the file, and as much again to
# the write-ahead log beside it, until that has 4 MiB and SQLite begins it anew. In batches of 50,
# with their intents: 0.57 MB for 400 answers, 7.9 MB for 5,000, 79 MB for 100,000.
_BYTES_OF_ANSWER = 800
_MOST_IN_LOG = 4 << 20


def require_room(path: Path, entries: int) -> None:
    """See that the disk has room for so many more answers. Raises LedgerError, OSError."""
    import shutil  # brings the compression libraries

    in_file = entries * _BYTES_OF_ANSWER
    needed = in_file + min(in_file, _MOST_IN_LOG)
    disk = shutil.disk_usage(path.parent)
    # Some network file systems do not tell, and say that nothing of nothing is free.
    if disk.total and disk.free < needed:
        raise no_space(
            path,
            f"the answers to {entries} entries need {_megabytes(needed)}, and only "
            f"{_megabytes(disk.free)} are free",
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
