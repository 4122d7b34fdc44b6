from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import OutputError, UsageError
from dkimctl.service.registrations import Entry, validate_entry
from dkimctl.service.signers import Plan, SigningKey, open_directory, opendkim_files, rspamd_files

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signer runs there")

NOW = datetime(2027, 1, 1, tzinfo=UTC)
OLD_TABLE, NEW_TABLE = "KeyTable.0123456789abcdef", "KeyTable.fedcba9876543210"
KEY, OTHER_KEY = "s1._domainkey.example.com", "s2._domainkey.example.com"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "export"


@contextmanager
def opened(path):
    with open_directory(path, "opendkim") as directory:
        yield directory


def export(path, files=None, keys=None, now=NOW):
    """The names of the files that were written."""
    with opened(path) as directory:
        written = directory.write(files or {}, keys or {}, now)
    return [file.name for file in written]


def contents(path):
    files = (file for file in path.rglob("*") if not file.name.startswith("."))
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()}


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_user_can_read_anything(path):
    old = os.umask(0)
    try:
        export(path, {OLD_TABLE: "table"}, {KEY: b"key"})
    finally:
        os.umask(old)
    assert {mode(path), mode(path / "keys")} == {0o700}
    assert {mode(file) for file in path.rglob("*") if file.is_file()} == {0o600}


def test_keys_are_written_before_the_tables_that_name_them(path):
    written = export(path, {OLD_TABLE: "a", "opendkim.conf": "b"}, {KEY: b"key"})
    assert written == [KEY, OLD_TABLE, "opendkim.conf"]


def test_without_a_change_nothing_is_rewritten(path):
    export(path, {OLD_TABLE: "table"}, {KEY: b"key"})
    before = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in path.rglob("*")}
    assert export(path, {OLD_TABLE: "table"}, {KEY: b"key"}, NOW + timedelta(days=1)) == []
    after = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in path.rglob("*")}
    assert after == before


def test_what_is_no_longer_in_use_stays_for_an_hour(path):
    export(path, {OLD_TABLE: "old"}, {KEY: b"key"})
    new = {NEW_TABLE: "new"}, {OTHER_KEY: b"other"}
    export(path, *new, NOW)
    for minutes in (1, 60):
        export(path, *new, NOW + timedelta(minutes=minutes))
        assert {OLD_TABLE, f"keys/{KEY}"} <= contents(path).keys()
    export(path, *new, NOW + timedelta(minutes=61))
    assert contents(path) == {NEW_TABLE: b"new", f"keys/{OTHER_KEY}": b"other"}


def test_what_comes_into_use_again_has_its_hour_again(path):
    used, unused = ({}, {KEY: b"key"}), ({}, {})
    export(path, *used, NOW)
    export(path, *unused, NOW)
    export(path, *used, NOW + timedelta(minutes=50))
    export(path, *unused, NOW + timedelta(minutes=90))
    export(path, *unused, NOW + timedelta(minutes=140))
    assert f"keys/{KEY}" in contents(path)


def test_a_clock_that_was_ahead_does_not_keep_keys(path):
    export(path, {}, {KEY: b"key"}, NOW)
    export(path, now=NOW + timedelta(days=1000))
    export(path, now=NOW)
    export(path, now=NOW + timedelta(minutes=61))
    assert contents(path) == {}


@pytest.mark.parametrize("damage", [b"", b"cut", b"another key"])
def test_a_damaged_key_is_written_again(path, damage):
    export(path, {}, {KEY: b"key"})
    (path / "keys" / KEY).write_bytes(damage)
    assert export(path, {}, {KEY: b"key"}) == [KEY]


def test_a_key_that_others_can_read_is_replaced_by_one_that_they_cannot(path):
    export(path, {}, {KEY: b"key"})
    (path / "keys" / KEY).chmod(0o644)
    assert export(path, {}, {KEY: b"key"}) == [KEY]
    assert mode(path / "keys" / KEY) == 0o600


def test_files_of_others_stay(path):
    export(path)
    foreign = {"README": b"ours", "KeyTable": b"theirs", "keys/backup.pem": b"old", "keys/s1": b""}
    for name, content in foreign.items():
        (path / name).write_bytes(content)
    (path / "keys" / KEY).symlink_to(path / "README")
    export(path, now=NOW + timedelta(days=1))
    export(path, now=NOW + timedelta(days=2))
    assert {name: contents(path)[name] for name in foreign} == foreign
    assert (path / "keys" / KEY).is_symlink()


def test_a_directory_of_something_else_is_refused(path):
    path.mkdir(mode=0o700)
    (path / "mail.private").write_text("key")
    with pytest.raises(UsageError, match=r"not of an export, such as mail\.private"):
        export(path, {}, {KEY: b"key"})
    assert contents(path) == {"mail.private": b"key"}


def test_a_directory_of_another_format_is_refused(path):
    export(path)
    with pytest.raises(UsageError, match="for another signer than rspamd"):  # noqa: SIM117
        with open_directory(path, "rspamd"):
            pass


def test_a_directory_that_others_can_write_to_is_refused(path):
    path.mkdir()
    path.chmod(0o777)
    with pytest.raises(UsageError, match="other users can write to it"):
        export(path)


@pytest.mark.parametrize("name", ["", "keys"])
def test_a_link_to_nowhere_is_refused(path, tmp_path, name):
    if name:
        export(path)
        (path / name).rmdir()
    (path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError):
        export(path)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", [f"keys/{KEY}", OLD_TABLE])
def test_a_link_in_place_of_a_file_is_refused_before_anything_is_written(path, tmp_path, name):
    export(path)
    (tmp_path / "victim").write_text("theirs")
    (path / name).symlink_to(tmp_path / "victim")
    with pytest.raises(UsageError, match="symbolic link"):
        export(path, {OLD_TABLE: "table"}, {OTHER_KEY: b"other", KEY: b"key"})
    assert (tmp_path / "victim").read_text() == "theirs"
    assert not (path / "keys" / OTHER_KEY).exists()


@pytest.mark.parametrize("state", ["", "[]", '{"format": "opendkim", "unused": {"x": 1}}'])
def test_a_damaged_state_file_is_an_error(path, state):
    export(path)
    (path / ".dkimctl-export.json").write_text(state)
    with pytest.raises(UsageError, match="damaged"):
        export(path)


@pytest.mark.parametrize("name", ["a b", "a:b", "50%", "a#b", "a$b", 'a"b', "ä"])
def test_a_path_that_tables_cannot_hold_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="characters"):
        export(tmp_path / name)


def test_an_unknown_group_is_an_error(path):
    with pytest.raises(UsageError, match="--group"):  # noqa: SIM117
        with open_directory(path, "opendkim", "no-such-group"):
            pass
    assert not path.exists()


def test_a_group_can_read_but_not_write(path):
    import grp

    own = grp.getgrgid(os.getegid()).gr_name
    with open_directory(path, "opendkim", own) as directory:
        directory.write({OLD_TABLE: "table"}, {KEY: b"key"}, NOW)
    assert {mode(path), mode(path / "keys")} == {0o750}
    assert {mode(path / name) for name in (OLD_TABLE, f"keys/{KEY}")} == {0o640}


def test_leftovers_of_a_killed_export_are_deleted(path):
    export(path)
    leftover = path / "keys" / ".dkimctl-0123456789abcdef.tmp"
    leftover.write_text("half a key")
    export(path)
    assert not leftover.exists()


def test_a_full_disk_leaves_what_was_there(small_disk):
    path = small_disk.path / "export"
    export(path, {OLD_TABLE: "a", "opendkim.conf": OLD_TABLE}, {KEY: b"key"})
    before = contents(path)
    small_disk.fill(leaving=8192)
    with pytest.raises(OutputError, match="No space left"):
        export(path, {NEW_TABLE: "b" * 2**16, "opendkim.conf": NEW_TABLE}, {OTHER_KEY: b"k" * 999})
    after = contents(path)
    assert {name: after[name] for name in before} == before
    assert not list(path.rglob("*.tmp"))


def test_the_longest_names_fit(path):
    selector = ".".join(["s" * 60] * 3)
    domain = f"{'d' * 55}.example"[: 253 - len(f"{selector}._domainkey.")]
    name = f"{selector}._domainkey.{domain}"
    assert len(f"{selector}._domainkey.{domain}") > 240
    longest = name + "x" * (253 - len(name))
    assert export(path, {}, {longest: b"key"}) == [longest]
    export(path, now=NOW)
    export(path, now=NOW + timedelta(hours=2))
    assert contents(path) == {}


_LABELS = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
_NAMES = st.lists(_LABELS, min_size=1, max_size=3).map(".".join)


@given(st.lists(st.tuples(_NAMES, _NAMES), max_size=5), st.booleans())
def test_each_domain_leads_to_its_key(names, has_third_party):
    entries = (validate_entry({"sign_domain": f"{d}.example", "selector": s}) for d, s in names)
    keys = [
        SigningKey(entry.sign_domain, entry.selector, b"key")
        for entry in entries
        if isinstance(entry, Entry) and entry.selector
    ]
    by_domain = {key.sign_domain: key for key in keys}
    third_party = keys[0] if keys and has_third_party else None
    plan = Plan(by_domain, third_party, {}, [], [])
    directory = Path("/srv/export")

    files = opendkim_files(plan, directory, directory / "keys")
    *_, config = files.values()
    tables = {line.split()[0]: line.split()[1] for line in config.splitlines()}
    paths = {name: Path(path.removeprefix("file:")) for name, path in tables.items()}
    key_table, signing_table = (
        dict(line.split() for line in files[paths[name].name].splitlines())
        for name in ("KeyTable", "SigningTable")
    )
    expected = by_domain | ({"*": third_party} if third_party else {})
    assert {domain: key_table[name] for domain, name in signing_table.items()} == {
        domain: f"{key.sign_domain}:{key.selector}:/srv/export/keys/{key.fqdn}"
        for domain, key in expected.items()
    }
    assert len(key_table) == len(plan.keys)

    lines = rspamd_files(plan, directory, directory / "keys")["selectors.map"].splitlines()
    assert dict(line.split() for line in lines) == {
        domain: key.fqdn if domain == "*" else key.selector for domain, key in expected.items()
    }


def test_the_settings_of_rspamd_do_not_depend_on_the_keys():
    directory = Path("/srv/export")
    key = SigningKey("example.com", "s1", b"key")
    with_key, without = (
        rspamd_files(Plan(keys, third, {}, [], []), directory, directory / "keys")
        for keys, third in (({"example.com": key}, key), ({}, None))
    )
    assert with_key["dkim_signing.conf"] == without["dkim_signing.conf"]
    assert not re.search(r"\{map\}|\{keys\}", without["dkim_signing.conf"])
