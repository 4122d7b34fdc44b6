"""The directory that a signer reads, changed so that it never sees half.

Key files come first, then the tables that name them; each file is replaced as a whole. What is no
longer in use stays for an hour, since a signer may still have the tables of before. A state file
marks the directory as ours. Files that others put into it are left alone.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dkimctl.errors import OutputError, UsageError
from dkimctl.system.locking import lock_file_of, wait_for_lock
from dkimctl.system.ownership import directory_fault, file_fault, refuse
from dkimctl.system.writing import sync_directory

KEPT = timedelta(hours=1)
"""How long a file stays that is no longer in use."""

_KEYS = "keys"
_STATE = ".dkimctl-export.json"
_LOCK_SECONDS = 30
# What our files are called: other files are not ours. See `SigningKey.fqdn` and `opendkim_files`.
_KEY_FILE = re.compile(r"[a-z0-9.-]+\._domainkey\.[a-z0-9.-]+")
_TABLE = re.compile(r"(?:KeyTable|SigningTable)\.[0-9a-f]{16}")
_TEMPORARY = re.compile(r"\.dkimctl-[0-9a-f]{16}\.tmp")
# Of a path in tables and settings, which have no escapes for other characters.
_PATH = re.compile(r"[A-Za-z0-9._/+@-]+")
_OTHER = "name another one with --output-dir"


class ExportDirectory:
    """A directory that belongs to one format; see `open_directory`."""

    def __init__(self, path: Path, kind: str, gid: int | None) -> None:
        self.path = path
        self.keys = path / _KEYS
        self._kind = kind
        self._gid = gid
        self._unused: dict[str, datetime] = {}

    def write(
        self, files: Mapping[str, str], keys: Mapping[str, bytes], now: datetime
    ) -> list[Path]:
        """Make the content that of `files` and, in `keys`, of the key files, by name.

        Gives the files that were written: none, if all are as they should be. Raises UsageError for
        what others could have put there, OutputError if there is no space.
        """
        wanted = {self.keys / name: pem for name, pem in keys.items()}
        wanted |= {self.path / name: text.encode() for name, text in files.items()}
        with _explained(self.path):
            for path in wanted:
                refuse(file_fault(path), UsageError, hint=_OTHER)
            changed = [path for path, content in wanted.items() if not self._has(path, content)]
            for path in changed:
                self._replace(path, wanted[path])
            for directory in {path.parent for path in changed}:
                sync_directory(directory)
            self._clean_up({str(path.relative_to(self.path)) for path in wanted}, now)
        return changed

    def prepare(self) -> None:
        """Check or create what is always there, and delete what a killed run has left."""
        if not self._read_state():
            self._write_state()
        self._prepare_keys()
        if self._gid is not None:
            for directory in (self.path, self.keys):
                _give(directory, self._gid, 0o750)
        for directory in (self.path, self.keys):
            for file in directory.iterdir():
                if _TEMPORARY.fullmatch(file.name):
                    file.unlink()

    def _prepare_keys(self) -> None:
        if self.keys.is_symlink() or (self.keys.exists() and not self.keys.is_dir()):
            raise UsageError(f"{self.keys} is not a directory", hint=_OTHER)
        self.keys.mkdir(mode=0o700, exist_ok=True)
        refuse(directory_fault(self.keys), UsageError, hint=_OTHER)

    def _read_state(self) -> bool:
        """Read the state file; False if the directory is new. Raises UsageError."""
        path = self.path / _STATE
        refuse(file_fault(path), UsageError, hint=_OTHER)
        if not path.exists():
            _require_empty(self.path)
            return False
        try:
            state = json.loads(path.read_bytes())
            kind, unused = state["format"], dict(state["unused"].items())
            self._unused = {name: _utc(time) for name, time in unused.items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UsageError(
                f"{path} is damaged", hint=f"delete the directory {self.path}, and export again"
            ) from None
        if kind != self._kind:
            raise UsageError(
                f"{self.path} is an export for another signer than {self._kind}", hint=_OTHER
            )
        return True

    def _write_state(self) -> None:
        unused = {name: time.isoformat() for name, time in sorted(self._unused.items())}
        document = {"format": self._kind, "unused": unused}
        self._replace(self.path / _STATE, (json.dumps(document, indent=1) + "\n").encode())

    def _has(self, path: Path, content: bytes) -> bool:
        try:
            status = path.stat()
        except FileNotFoundError:
            return False
        is_safe = sys.platform == "win32" or (
            stat.S_IMODE(status.st_mode) == self._mode and self._gid in (None, status.st_gid)
        )
        return is_safe and path.read_bytes() == content

    @property
    def _mode(self) -> int:
        return 0o600 if self._gid is None else 0o640

    def _replace(self, path: Path, content: bytes) -> None:
        # A name of its own: that of a key, with more added, may be too long for a file.
        temporary = path.with_name(f".dkimctl-{secrets.token_hex(8)}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            if self._gid is not None:
                _give(temporary, self._gid, self._mode)
            temporary.chmod(self._mode)  # the umask may have removed more
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _clean_up(self, wanted: set[str], now: datetime) -> None:
        """Delete what has not been in use for an hour, and note since when the rest is unused."""
        unused = {}
        for name in self._ours():
            since = min(self._unused.get(name, now), now)
            if name in wanted:
                continue
            if now - since > KEPT:
                (self.path / name).unlink()
            else:
                unused[name] = since
        if unused != self._unused:
            self._unused = unused
            self._write_state()

    def _ours(self) -> Iterator[str]:
        """The key files and tables that are there."""
        for directory, pattern in ((self.path, _TABLE), (self.keys, _KEY_FILE)):
            for file in directory.iterdir():
                is_file = file.is_file() and not file.is_symlink()
                if is_file and pattern.fullmatch(file.name):
                    yield str(file.relative_to(self.path))


@contextmanager
def open_directory(path: Path, kind: str, group: str | None = None) -> Iterator[ExportDirectory]:
    """The directory at `path`, created if it is missing, and locked until the block ends.

    `kind` is the format. Members of `group` may read what is in it; without one, only the user.
    Raises UsageError for a directory of something else or that others can write to, and OutputError
    if it cannot be used.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - without following links
    if not _PATH.fullmatch(str(path)):
        raise UsageError(
            f"{path} has characters that the files of a signer cannot name",
            hint="use a directory whose path has only letters of ASCII, digits and / . _ - + @",
        )
    gid = _group_id(group) if group is not None else None
    with _explained(path):
        _create(path)
        lock = lock_file_of(path / _STATE)
        try:
            unlock = wait_for_lock(lock, seconds=_LOCK_SECONDS)
        except TimeoutError:
            raise OutputError(
                f"another export to {path} is running", hint="try again when it has ended"
            ) from None
    try:
        directory = ExportDirectory(path, kind, gid)
        with _explained(path):
            directory.prepare()
        yield directory
    finally:
        unlock()


def _create(path: Path) -> None:
    if not path.parent.is_dir():
        raise UsageError(
            f"{path}: the directory {path.parent} does not exist",
            hint="create it, in a way that the signer can read what is below it",
        )
    refuse(directory_fault(path, in_own_group=True), UsageError, hint=_OTHER)
    path.mkdir(mode=0o700, exist_ok=True)
    refuse(directory_fault(path, in_own_group=True), UsageError, hint=_OTHER)


def _require_empty(path: Path) -> None:
    lock = lock_file_of(path / _STATE).name
    for file in path.iterdir():
        if file.name != lock and not _TEMPORARY.fullmatch(file.name):
            raise UsageError(
                f"{path} holds files that are not of an export, such as {file.name}",
                hint="name a new or empty directory with --output-dir",
            )


def _group_id(name: str) -> int:
    if sys.platform == "win32":
        raise UsageError("--group has no effect on Windows", hint="leave it out")
    import grp

    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise UsageError(
            "in --group: there is no such group on this machine",
            hint="name the group of the signer, such as opendkim or _rspamd",
        ) from None


def _give(path: Path, gid: int, mode: int) -> None:
    """Give a file or directory to a group, unless it has that already."""
    status = path.stat()
    if sys.platform != "win32" and status.st_gid != gid:
        try:
            os.chown(path, -1, gid)
        except PermissionError:
            raise UsageError(
                "in --group: you are not in this group",
                hint="run the command as root, or add the user that runs it to the group",
            ) from None
    if stat.S_IMODE(status.st_mode) != mode:
        path.chmod(mode)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else path
        raise OutputError(
            f"cannot export to {name}: {error.strerror or error}",
            hint="check the directory, its permissions and the free disk space; the signer still "
            "has the tables of before",
        ) from None
