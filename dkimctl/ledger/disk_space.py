"""Room on the disk for what the service is going to answer."""

from __future__ import annotations

from pathlib import Path

from dkimctl.ledger.connecting import beside, size_of
from dkimctl.ledger.faults import no_space

# Measured: an answer with a 2048-bit key adds 650 to 750 bytes to the file. A commit also puts
# every page that it changed into the write-ahead log: that of the answer, and at worst one of
# each index. The log grows to 4 MiB before SQLite begins it anew.
_BYTES_OF_ANSWER = 800
_BYTES_IN_LOG = 3 * 4096
_LEAST_LOG = 4 << 20


def require_room(path: Path, entries: int) -> int:
    """See that the disk has room for so many more answers; gives for how many beyond them.

    Raises LedgerError, OSError.
    """
    import shutil  # brings the compression libraries

    log = max(0, _LEAST_LOG - size_of(beside(path, "-wal")))
    each = _BYTES_OF_ANSWER + _BYTES_IN_LOG
    needed = entries * each + log
    disk = shutil.disk_usage(path.parent)
    # Some network file systems do not tell, and say that nothing of nothing is free.
    if disk.total and disk.free < needed:
        raise no_space(
            path,
            f"the answers to {entries} entries may need {_megabytes(needed)}, and only "
            f"{_megabytes(disk.free)} are free",
        )
    return max(0, disk.free - needed) // each if disk.total else entries


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
