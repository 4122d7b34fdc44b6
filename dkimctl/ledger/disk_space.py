"""Whether the disk has space for the answers to come."""

from __future__ import annotations

from pathlib import Path

from dkimctl.ledger.errors import no_space_error
from dkimctl.ledger.opening import side_file, size_of

# Measured: an answer with a 2048-bit key adds 650 to 750 bytes to the file. A commit also writes
# every page it changed to the write-ahead log: that of the answer, and at worst one of each index.
# The log grows to 4 MiB before SQLite starts it over.
_BYTES_OF_ANSWER = 800
_BYTES_IN_LOG = 3 * 4096
_FULL_LOG = 4 << 20


def require_disk_space(path: Path, entries: int) -> int:
    """Require space for the answers to `entries`; returns for how many more there is space.

    Raises LedgerError and OSError.
    """
    import shutil  # brings the compression libraries

    log_growth = max(0, _FULL_LOG - size_of(side_file(path, "-wal")))
    bytes_per_entry = _BYTES_OF_ANSWER + _BYTES_IN_LOG
    needed = entries * bytes_per_entry + log_growth
    disk = shutil.disk_usage(path.parent)
    if not disk.total:  # some network file systems report no sizes
        return entries
    if disk.free < needed:
        raise no_space_error(
            path,
            f"the answers to {entries} entries may need {_megabytes(needed)}, and only "
            f"{_megabytes(disk.free)} are free",
        )
    return (disk.free - needed) // bytes_per_entry


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
