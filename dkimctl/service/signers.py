"""`service export`: which keys sign mail at a moment, and the files of opendkim and rspamd.

A registration is in effect if it is enabled, its start_date has come and its client is not deleted.
Of a domain's registrations in effect, the one with the latest start_date signs, and of several with
the same one the latest registered: so a new key takes over on its day. Those marked `default`
(interface 2.3) have a line of their own: the latest of them is the key for third-party signing,
that is, for mail of domains without a key. It signs mail of its own domain only if no other
registration of the domain does.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import os
import re
import secrets
import stat
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from dkimctl.errors import NegativeAnswer, OutputError, UsageError
from dkimctl.files import (
    directory_fault,
    file_fault,
    lock_file_of,
    refuse,
    sync_directory,
    wait_for_lock,
)
from dkimctl.service.clients import ClientState
from dkimctl.service.database import Store
from dkimctl.service.key_pairs import WrongPassphrase
from dkimctl.service.registrations import validate_entry
from dkimctl.service.schema import clients, registrations

if sys.platform != "win32":
    import grp

KEPT = timedelta(hours=1)  # how long a file stays that is not in use any more

_STATE = ".dkimctl-export.json"
# What our files are called: see `SigningKey.fqdn` and `opendkim_files`. Others are not ours.
_KEY_FILE = re.compile(r"[a-z0-9.-]+\._domainkey\.[a-z0-9.-]+")
_TABLE = re.compile(r"(?:KeyTable|SigningTable)\.[0-9a-f]{16}")
_TEMPORARY = re.compile(r"\.dkimctl-[0-9a-f]{16}\.tmp")
# Of a path in tables and settings, which have no escapes for other characters.
_PATH = re.compile(r"[A-Za-z0-9._/+@-]+")
_OTHER = "name another one with --output-dir"
_MAP = "selectors.map"
KEYS = "keys"  # the directory of the key files


class SigningKey(NamedTuple):
    """A key in use. Names are valid and in lower case; `private_key` is PKCS #8 in PEM."""

    sign_domain: str
    selector: str
    private_key: bytes

    @property
    def fqdn(self) -> str:
        """The name of its DNS record, which is also the name of its file."""
        return f"{self.selector}._domainkey.{self.sign_domain}"

    def __repr__(self) -> str:  # without the private key
        return f"SigningKey({self.fqdn})"


class Plan(NamedTuple):
    """What a signer is to use."""

    by_domain: Mapping[str, SigningKey]
    third_party: SigningKey | None
    left_out: Mapping[str, int]  # how many other registrations, by the reason in words
    contested: list[str]  # domains of several clients, of which the first one's keys sign
    third_party_owners: list[str]  # clients with a key for third-party signing, if none was chosen

    @property
    def keys(self) -> list[SigningKey]:
        """All keys in use, each once."""
        third_party = [self.third_party] if self.third_party else []
        return list({key.fqdn: key for key in [*self.by_domain.values(), *third_party]}.values())


class _Candidate(NamedTuple):
    """A registration. The columns of the query are named in the same order."""

    sign_domain: str
    selector: str
    client_id: str
    start_date: datetime
    regist_date: datetime
    default: int
    enable: bool
    private_key: bytes
    client_state: str


_CANDIDATES = (
    sa.select(*(registrations.c[name] for name in _Candidate._fields[:-1]), clients.c.state)
    .join(clients, clients.c.client_id == registrations.c.client_id)
    .order_by(registrations.c.sign_domain, registrations.c.selector)
    .execution_options(yield_per=1000)
)


def read_plan(store: Store, now: datetime, third_party_client: str | None = None) -> Plan:
    """The keys that sign at `now`.

    `third_party_client` is the client whose key signs mail of domains without one. Without it, no
    key does if there are registrations of several clients: a client may mark any of its own. Raises
    NegativeAnswer if it is unknown or deleted, UsageError if the data cannot be used.
    """
    by_domain: dict[str, _Candidate] = {}
    marked: dict[str, _Candidate] = {}  # `default`: the latest of each client
    left_out: Counter[str] = Counter()
    contested: list[str] = []
    owners: set[str] = set()
    latest = attrgetter("start_date", "regist_date", "selector")
    with store.reading(snapshot=True) as connection:
        if third_party_client is not None:
            query = sa.select(clients.c.state).where(clients.c.client_id == third_party_client)
            if connection.execute(query).scalar_one_or_none() in (None, ClientState.DELETED):
                raise NegativeAnswer(
                    "in --third-party-client: the client does not exist, or is deleted",
                    hint="list the clients with `dkimctl service client list` and the same --data",
                )
        with connection.execute(_CANDIDATES) as rows:  # closes the cursor also after an error
            candidates = (_candidate(store, row) for row in rows)
            for domain, of_domain in groupby(candidates, attrgetter("sign_domain")):
                in_effect = []
                for row in of_domain:
                    if row.client_state == ClientState.DELETED:
                        left_out["of deleted clients"] += 1
                        continue
                    owners.add(row.client_id)
                    if not row.enable:
                        left_out["disabled"] += 1
                    elif row.start_date > now:
                        left_out["not yet in effect"] += 1
                    else:
                        in_effect.append(row)
                if not in_effect:
                    continue
                # Those of the client that was first: a later one may not take over its mail.
                first = min(in_effect, key=attrgetter("regist_date")).client_id
                of_first = [row for row in in_effect if row.client_id == first]
                if len(of_first) < len(in_effect):
                    contested.append(domain)
                    left_out["of a second client of the domain"] += len(in_effect) - len(of_first)
                left_out["superseded"] += len(of_first)  # less those that are used, see below
                by_domain[domain] = max(of_first, key=lambda row: (not row.default, latest(row)))
                defaults = [row for row in [*of_first, marked.get(first)] if row and row.default]
                if defaults:
                    marked[first] = max(defaults, key=latest)
    if third_party_client is None and len(owners) == 1:
        (third_party_client,) = owners
    third_party = marked.get(third_party_client or "")
    # Only now are the keys decrypted, each once.
    used = dict.fromkeys([*by_domain.values(), *([third_party] if third_party else [])])
    left_out["superseded"] -= len(used)
    keys = {}
    for row in used:
        try:
            keys[row] = SigningKey(*row[:2], store.unseal(row.private_key))
        except WrongPassphrase:
            raise UsageError(
                f"{store.name}: the private key of {row.selector} of {row.sign_domain} is "
                "encrypted with another passphrase",
                hint="set DKIMCTL_SERVICE_PASSPHRASE to the passphrase it was encrypted with",
            ) from None
    return Plan(
        {domain: keys[row] for domain, row in by_domain.items()},
        keys[third_party] if third_party else None,
        +left_out,
        contested,
        [] if third_party else sorted(marked),
    )


def _candidate(store: Store, row: sa.Row[*tuple[Any, ...]]) -> _Candidate:
    """Check names and dates again: the names become part of paths, and of lines of tables."""
    try:
        # As they are: the first and last dates there are would not fit into another time zone.
        start, registered = map(datetime.fromisoformat, (row.start_date, row.regist_date))
        entry = validate_entry({"sign_domain": row.sign_domain, "selector": row.selector})
        if start.tzinfo and registered.tzinfo and entry.name == row[:2]:
            return _Candidate(*row)._replace(start_date=start, regist_date=registered)
    except (TypeError, ValueError):
        pass
    raise UsageError(
        f"{store.name}: cannot use the service data: invalid registration {row.selector!a} of "
        f"{row.sign_domain!a}",
        hint="restore a backup of the data, or delete this registration",
    )


def opendkim_files(plan: Plan, directory: Path) -> dict[str, str]:
    """The content of each file of opendkim.conf(5) in `directory`, in the order of writing.

    The last one names the two tables, so they take effect together. opendkim reads the tables when
    it starts, and on SIGUSR1; the key files, for each message.
    """
    signing = {domain: key.fqdn for domain, key in sorted(plan.by_domain.items())}
    if plan.third_party:
        signing["*"] = plan.third_party.fqdn  # looked up last
    rows = {
        "KeyTable": [
            f"{key.fqdn} {key.sign_domain}:{key.selector}:{directory / KEYS / key.fqdn}\n"
            for key in plan.keys
        ],
        "SigningTable": [f"{domain} {fqdn}\n" for domain, fqdn in signing.items()],
    }
    files, config = {}, ""
    for name, lines in rows.items():
        text = "".join(lines)
        file = f"{name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        files[file] = text
        # Unlike refile:, file: compares whole names, and has no patterns.
        config += f"{name} file:{directory / file}\n"
    return {**files, "opendkim.conf": config}


def rspamd_files(plan: Plan, directory: Path) -> dict[str, str]:
    """The content of each file in `directory`.

    rspamd reads a changed map by itself, and the settings of its module dkim_signing when it
    starts: they depend on the directory alone. There is one map, so that a selector never meets the
    key of another. The module has no fallback to another domain: use_domain_custom chooses the one
    that signs. The key of third-party signing may be another than that for mail of its own domain.
    """
    lines = [f"{domain} {key.selector}\n" for domain, key in sorted(plan.by_domain.items())]
    if plan.third_party:
        lines.append(f"* {plan.third_party.fqdn}\n")
    settings = importlib.resources.files("dkimctl.service").joinpath("rspamd.conf").read_text()
    for word, name in (("SETTINGS", "dkim_signing.conf"), ("MAP", _MAP), ("KEYS", KEYS)):
        settings = settings.replace(f"@{word}@", str(directory / name))
    return {_MAP: "".join(lines), "dkim_signing.conf": settings}


class ExportDirectory:
    """A directory that a signer reads, changed so that it never sees half; see `open_directory`.

    Key files come first, then the tables that name them; each file is replaced as a whole. What is
    no longer in use stays for an hour, since a signer may still have the tables of before. A state
    file marks the directory as ours, for one format. Files that others put into it are left alone.
    """

    def __init__(self, path: Path, kind: str, gid: int | None) -> None:
        """Check or create what is always there, and delete what a killed run has left."""
        self.path = path
        self.keys = path / KEYS
        self._kind = kind
        self._gid = gid
        self._mode = 0o600 if gid is None else 0o640
        self._unused = self._read_state()
        _make_directory(self.keys)
        for directory in (self.path, self.keys):
            if gid is not None:
                _give(directory, gid, 0o750)
            for file in directory.iterdir():
                if _TEMPORARY.fullmatch(file.name):
                    file.unlink()

    def write(
        self, files: Mapping[str, str], keys: Mapping[str, bytes], now: datetime
    ) -> list[Path]:
        """Make the content that of `files` and, in `keys`, of the key files, by name.

        Gives the files that were written: none, if all are as they should be. Raises UsageError for
        what others could have put there, OSError if there is no space.
        """
        wanted = {self.keys / name: pem for name, pem in keys.items()}
        wanted |= {self.path / name: text.encode() for name, text in files.items()}
        for path in wanted:
            refuse(file_fault(path), UsageError, hint=_OTHER)
        changed = [path for path, content in wanted.items() if not self._has(path, content)]
        for path in changed:
            self._replace(path, wanted[path])
        for directory in {path.parent for path in changed}:
            sync_directory(directory)
        self._clean_up(wanted.keys(), now)
        return changed

    def _read_state(self) -> dict[str, datetime]:
        """Since when each file is unused, as the state file says, which a new directory gets."""
        path = self.path / _STATE
        refuse(file_fault(path), UsageError, hint=_OTHER)
        if not path.exists():
            for file in self.path.iterdir():
                if file.name != lock_file_of(path).name and not _TEMPORARY.fullmatch(file.name):
                    raise UsageError(
                        f"{self.path} holds files that are not of an export, such as {file.name}",
                        hint="name a new or empty directory with --output-dir",
                    )
            self._write_state({})
        try:
            state = json.loads(path.read_bytes())
            kind, times = state["format"], state["unused"].items()
            unused = {name: datetime.fromisoformat(time).astimezone(UTC) for name, time in times}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UsageError(
                f"{path} is damaged", hint=f"delete the directory {self.path}, and export again"
            ) from None
        if kind != self._kind:
            raise UsageError(
                f"{self.path} is an export for another signer than {self._kind}", hint=_OTHER
            )
        return unused

    def _write_state(self, unused: Mapping[str, datetime]) -> None:
        times = {name: time.isoformat() for name, time in sorted(unused.items())}
        document = json.dumps({"format": self._kind, "unused": times}, indent=1)
        self._replace(self.path / _STATE, f"{document}\n".encode())

    def _has(self, path: Path, content: bytes) -> bool:
        try:
            status = path.stat()
        except FileNotFoundError:
            return False
        is_safe = sys.platform == "win32" or (
            stat.S_IMODE(status.st_mode) == self._mode and self._gid in (None, status.st_gid)
        )
        return is_safe and path.read_bytes() == content

    def _replace(self, path: Path, content: bytes) -> None:
        # A name of its own: that of a key, with more added, may be too long for a file.
        temporary = path.with_name(f".dkimctl-{secrets.token_hex(8)}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            _give(temporary, self._gid, self._mode)  # the umask may have removed more
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _clean_up(self, wanted: Collection[Path], now: datetime) -> None:
        """Delete what has not been in use for an hour, and note since when the rest is unused."""
        unused = {}
        for directory, pattern in ((self.path, _TABLE), (self.keys, _KEY_FILE)):
            for file in directory.iterdir():
                is_ours = pattern.fullmatch(file.name) and file.is_file() and not file.is_symlink()
                if not is_ours or file in wanted:
                    continue
                name = str(file.relative_to(self.path))
                since = min(self._unused.get(name, now), now)
                if now - since > KEPT:
                    file.unlink()
                else:
                    unused[name] = since
        if unused != self._unused:
            self._unused = unused
            self._write_state(unused)


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
    with ExitStack() as stack:
        try:
            if not path.parent.is_dir():
                raise UsageError(
                    f"{path}: the directory {path.parent} does not exist",
                    hint="create it so that the signer can read the files in it",
                )
            _make_directory(path)
            stack.callback(wait_for_lock(lock_file_of(path / _STATE), seconds=30))
            yield ExportDirectory(path, kind, gid)
        except OSError as error:
            name = error.filename if isinstance(error.filename, str) else path
            raise OutputError(
                f"cannot export to {name}: {error.strerror or error}",
                hint="check the directory, its permissions and the free disk space, and that no "
                "other export is running; the signer still has the previous tables",
            ) from None


def _make_directory(path: Path) -> None:
    """Create a directory that others cannot change. Raises UsageError."""
    refuse(directory_fault(path, in_own_group=True), UsageError, hint=_OTHER)
    path.mkdir(mode=0o700, exist_ok=True)
    refuse(directory_fault(path, in_own_group=True), UsageError, hint=_OTHER)  # made by others


def _group_id(name: str) -> int:
    if sys.platform == "win32":
        raise UsageError("--group has no effect on Windows", hint="leave it out")
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise UsageError(
            "in --group: there is no such group on this machine",
            hint="name the group of the signer, such as opendkim or _rspamd",
        ) from None


def _give(path: Path, gid: int | None, mode: int) -> None:
    """Give a file or directory its mode and, if there is one, a group."""
    status = path.stat()
    if sys.platform != "win32" and gid is not None and status.st_gid != gid:
        try:
            os.chown(path, -1, gid)
        except PermissionError:
            raise UsageError(
                "in --group: you are not in this group",
                hint="run the command as root, or add the user that runs it to the group",
            ) from None
    if stat.S_IMODE(status.st_mode) != mode:
        path.chmod(mode)
