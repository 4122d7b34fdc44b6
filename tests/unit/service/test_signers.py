"""Which keys sign; each private key says whose it is."""

from __future__ import annotations

import os
import re
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from dkimctl.errors import NegativeAnswer, OutputError, UsageError
from dkimctl.service.clients import ClientState, change_state, create_client
from dkimctl.service.registrations import Entry, StoredRegistration, add_all, validate_entry
from dkimctl.service.signers import (
    Plan,
    SigningKey,
    open_directory,
    opendkim_files,
    read_plan,
    rspamd_files,
)

NOW = datetime(2021, 7, 1, tzinfo=UTC)
KEY = "-----BEGIN PRIVATE KEY-----\nkey of "


@pytest.fixture
def store(sqlite_store):
    return sqlite_store


@pytest.fixture
def register(store):
    """Store a registration of the client "first", or of another one."""
    for client_id in ("first", "second"):
        create_client(store, client_id)

    def register(
        sign_domain,
        selector,
        start_date="2021-01-01T00:00+00:00",
        *,
        client_id="first",
        default=0,
        enable=True,
        regist_date="2021-01-01T00:00:00+00:00",
    ):
        registration = StoredRegistration(
            client_id, sign_domain, selector, 2048, start_date, default, enable, "v", regist_date
        )
        assert add_all(store, {registration: f"{KEY}{sign_domain} {selector}".encode()})

    return register


def selectors(plan):
    return {domain: key.selector for domain, key in plan.by_domain.items()}


def third_party(plan):
    return plan.third_party.fqdn if plan.third_party else None


def test_the_latest_key_whose_start_date_has_come_signs(store, register):
    register("example.com", "old", "2021-01-01T00:00+00:00")
    register("example.com", "new", "2021-07-01T09:00+09:00")
    register("example.com", "next", "2021-07-01T00:00-00:01")
    # As the service writes them, the first and last dates do not fit into other time zones.
    register("first.example", "s1", "0001-01-01T00:00+23:59")
    register("last.example", "s1", "9999-12-31T23:59-23:59")
    # Of keys with one start date the latest registered signs.
    register("one.example", "a", regist_date="2021-02-01T00:00:01+00:00")
    register("one.example", "b", regist_date="2021-02-01T09:00:00+09:00")
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"example.com": "new", "first.example": "s1", "one.example": "a"}
    assert plan.by_domain["example.com"].private_key == f"{KEY}example.com new".encode()
    assert plan.left_out == {"not yet in effect": 2, "superseded": 2}
    assert "key of" not in repr(plan)


def test_disabled_registrations_and_those_of_a_deleted_client_are_left_out(store, register):
    register("example.com", "s1")
    register("example.com", "s2", "2021-02-01T00:00+00:00", enable=False)
    register("off.example", "s1", enable=False)
    register("two.example", "s1", client_id="second")
    change_state(store, "first", ClientState.DISABLED)  # which does not matter
    change_state(store, "second", ClientState.DELETED)
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"example.com": "s1"}
    assert plan.left_out == {"disabled": 2, "of deleted clients": 1}
    for client_id in ("unknown", "second"):
        with pytest.raises(NegativeAnswer, match="--third-party-client"):
            read_plan(store, NOW, client_id)


def test_a_later_client_does_not_take_over_the_mail_of_a_domain(store, register):
    register("example.com", "s1", regist_date="2021-01-01T00:00:00+00:00")
    register(
        "example.com", "s2", "2021-06-01T00:00+00:00", client_id="second", default=1,
        regist_date="2021-06-01T00:00:00+00:00",
    )  # fmt: skip
    plan = read_plan(store, NOW, "second")
    assert selectors(plan) == {"example.com": "s1"}
    assert plan.third_party is None
    assert plan.contested == ["example.com"]
    assert plan.left_out == {"of a second client of the domain": 1}


@pytest.mark.parametrize("default", [1, 2, -1])
@pytest.mark.parametrize("has_own", [True, False])
def test_a_default_registration_is_for_domains_without_a_key(store, register, default, has_own):
    if has_own:
        register("us.example", "own")
    register("us.example", "third", "2021-06-01T00:00+00:00", default=default)
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"us.example": "own" if has_own else "third"}
    assert third_party(plan) == "third._domainkey.us.example"
    assert [key.selector for key in plan.keys] == ["own", "third"][not has_own :]
    assert not plan.left_out


def test_the_latest_default_registration_of_all_domains_is_used(store, register):
    register("a.example", "s1", "2021-03-01T00:00+00:00", default=1)
    register("b.example", "s1", "2021-02-01T00:00+00:00", default=1)
    register("c.example", "s1", "2022-01-01T00:00+00:00", default=1)
    register("d.example", "s1", "2021-04-01T00:00+00:00", default=1, enable=False)
    assert third_party(read_plan(store, NOW)) == "s1._domainkey.a.example"


def test_no_client_signs_mail_of_another_client_without_being_chosen(store, register):
    register("us.example", "s1", default=1)
    register("them.example", "s1", client_id="second")
    plan = read_plan(store, NOW)
    assert plan.third_party is None
    assert plan.third_party_owners == ["first"]
    assert third_party(read_plan(store, NOW, "first")) == "s1._domainkey.us.example"
    assert third_party(read_plan(store, NOW, "second")) is None


@pytest.mark.parametrize(
    ("domain", "selector", "date"),
    [
        *((domain, "s1", None) for domain in ("../etc", "a b.com", "*.example.com", "EXAMPLE.com",
                                              "example.com:x")),
        *(("example.com", selector, None) for selector in ("../../x", "a/b", "%", "s1\n* x", "")),
        *(("example.com", "s1", date) for date in ("", "soon", "2021-01-01T00:00")),
    ],
)  # fmt: skip
def test_names_and_dates_that_the_service_does_not_write_are_refused(
    store, register, domain, selector, date
):
    register(domain, selector, "2021-01-01T00:00+00:00" if date is None else date)
    with pytest.raises(UsageError, match="invalid registration"):
        read_plan(store, NOW)


def test_a_key_with_another_passphrase_than_the_rest_is_refused(store, register):
    register("example.com", "s1")
    with store.writing() as connection:
        key = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
        connection.execute(text("UPDATE registrations SET private_key = :key"), {"key": key})
    with pytest.raises(UsageError, match="another passphrase"):
        read_plan(store, NOW)


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signer runs there")

EXPORT_NOW = datetime(2027, 1, 1, tzinfo=UTC)
OLD_TABLE, NEW_TABLE = "KeyTable.0123456789abcdef", "KeyTable.fedcba9876543210"
EXPORT_KEY, OTHER_KEY = "s1._domainkey.example.com", "s2._domainkey.example.com"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "export"


def export(path, files=None, keys=None, now=EXPORT_NOW, kind="opendkim", group=None):
    """The names of the files that were written."""
    with open_directory(path, kind, group) as directory:
        written = directory.write(files or {}, keys or {}, now)
    return [file.name for file in written]


def contents(path):
    files = (file for file in path.rglob("*") if not file.name.startswith("."))
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()}


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_are_written_before_the_tables_that_name_them_and_only_the_user_can_read_them(path):
    old = os.umask(0)
    try:
        written = export(path, {OLD_TABLE: "a", "opendkim.conf": "b"}, {EXPORT_KEY: b"key"})
    finally:
        os.umask(old)
    assert written == [EXPORT_KEY, OLD_TABLE, "opendkim.conf"]
    assert {mode(path), mode(path / "keys")} == {0o700}
    assert {mode(file) for file in path.rglob("*") if file.is_file()} == {0o600}


def test_a_group_can_read_but_not_write(path):
    import grp

    export(
        path, {OLD_TABLE: "table"}, {EXPORT_KEY: b"key"}, group=grp.getgrgid(os.getegid()).gr_name
    )
    assert {mode(path), mode(path / "keys")} == {0o750}
    assert {mode(path / name) for name in (OLD_TABLE, f"keys/{EXPORT_KEY}")} == {0o640}


def test_without_a_change_nothing_is_rewritten(path):
    files = {OLD_TABLE: "table"}, {EXPORT_KEY: b"key"}
    export(path, *files)
    before = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in path.rglob("*")}
    assert export(path, *files, EXPORT_NOW + timedelta(days=1)) == []
    after = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in path.rglob("*")}
    assert after == before


def test_what_is_no_longer_in_use_stays_for_an_hour(path):
    export(path, {OLD_TABLE: "old"}, {EXPORT_KEY: b"key"})
    new = {NEW_TABLE: "new"}, {OTHER_KEY: b"other"}
    export(path, *new, EXPORT_NOW)
    for minutes in (1, 60):
        export(path, *new, EXPORT_NOW + timedelta(minutes=minutes))
        assert {OLD_TABLE, f"keys/{EXPORT_KEY}"} <= contents(path).keys()
    export(path, *new, EXPORT_NOW + timedelta(minutes=61))
    assert contents(path) == {NEW_TABLE: b"new", f"keys/{OTHER_KEY}": b"other"}


def test_what_comes_into_use_again_has_its_hour_again(path):
    for used, minutes in ((True, 0), (False, 0), (True, 50), (False, 90), (False, 140)):
        keys = {EXPORT_KEY: b"key"} if used else {}
        export(path, {}, keys, EXPORT_NOW + timedelta(minutes=minutes))
    assert f"keys/{EXPORT_KEY}" in contents(path)


def test_a_clock_that_was_ahead_does_not_keep_keys(path):
    export(path, {}, {EXPORT_KEY: b"key"}, EXPORT_NOW)
    for minutes in (1_000_000, 0, 61):
        export(path, now=EXPORT_NOW + timedelta(minutes=minutes))
    assert contents(path) == {}


@pytest.mark.parametrize("damage", [b"", b"another key", None])
def test_a_key_that_is_damaged_or_that_others_can_read_is_replaced(path, damage):
    export(path, {}, {EXPORT_KEY: b"key"})
    if damage is None:
        (path / "keys" / EXPORT_KEY).chmod(0o644)
    else:
        (path / "keys" / EXPORT_KEY).write_bytes(damage)
    assert export(path, {}, {EXPORT_KEY: b"key"}) == [EXPORT_KEY]
    assert mode(path / "keys" / EXPORT_KEY) == 0o600
    assert contents(path) == {f"keys/{EXPORT_KEY}": b"key"}


def test_files_of_others_stay_and_leftovers_of_a_killed_export_do_not(path):
    export(path)
    foreign = {"README": b"ours", "KeyTable": b"theirs", "keys/backup.pem": b"old", "keys/s1": b""}
    for name, content in foreign.items():
        (path / name).write_bytes(content)
    (path / "keys" / EXPORT_KEY).symlink_to(path / "README")
    leftover = path / "keys" / ".dkimctl-0123456789abcdef.tmp"
    leftover.write_text("half a key")
    for days in (1, 2):
        export(path, now=EXPORT_NOW + timedelta(days=days))
    assert {name: contents(path)[name] for name in foreign} == foreign
    assert (path / "keys" / EXPORT_KEY).is_symlink()
    assert not leftover.exists()


def test_a_directory_of_something_else_is_refused(path):
    path.mkdir(mode=0o700)
    (path / "mail.private").write_text("key")
    with pytest.raises(UsageError, match=r"not of an export, such as mail\.private"):
        export(path, {}, {EXPORT_KEY: b"key"})
    assert contents(path) == {"mail.private": b"key"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.chmod(0o777), "other users can write to it"),
        *(
            (lambda path, state=state: (path / ".dkimctl-export.json").write_text(state), "damaged")
            for state in ("", "[]", '{"format": "opendkim", "unused": {"x": 1}}')
        ),
    ],
)
def test_a_directory_that_others_could_change_or_damaged_is_refused(path, spoil, message):
    export(path)
    spoil(path)
    with pytest.raises(UsageError, match=message):
        export(path)


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        *((name, {}, "characters") for name in ("a b", "a:b", "50%", "a#b", "a$b", 'a"b', "ä")),
        ("export", {"kind": "rspamd"}, "for another signer than rspamd"),
        ("new", {"group": "no-such-group"}, "--group"),
    ],
)
def test_what_an_export_cannot_be_is_refused(tmp_path, name, words, message):
    export(tmp_path / "export")
    with pytest.raises(UsageError, match=message):
        export(tmp_path / name, **words)
    assert [file.name for file in tmp_path.iterdir()] == ["export"]


@pytest.mark.parametrize("name", ["", "keys"])
def test_a_link_to_nowhere_is_refused(path, tmp_path, name):
    if name:
        export(path)
        (path / name).rmdir()
    (path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError):
        export(path)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", [f"keys/{EXPORT_KEY}", OLD_TABLE])
def test_a_link_in_place_of_a_file_is_refused_before_anything_is_written(path, tmp_path, name):
    export(path)
    (tmp_path / "victim").write_text("theirs")
    (path / name).symlink_to(tmp_path / "victim")
    with pytest.raises(UsageError, match="symbolic link"):
        export(path, {OLD_TABLE: "table"}, {OTHER_KEY: b"other", EXPORT_KEY: b"key"})
    assert (tmp_path / "victim").read_text() == "theirs"
    assert not (path / "keys" / OTHER_KEY).exists()


def test_a_full_disk_leaves_what_was_there(small_disk):
    path = small_disk.path / "export"
    export(path, {OLD_TABLE: "a", "opendkim.conf": OLD_TABLE}, {EXPORT_KEY: b"key"})
    before = contents(path)
    small_disk.fill(leaving=8192)
    with pytest.raises(OutputError, match="No space left"):
        export(path, {NEW_TABLE: "b" * 2**16, "opendkim.conf": NEW_TABLE}, {OTHER_KEY: b"k" * 999})
    after = contents(path)
    assert {name: after[name] for name in before} == before
    assert not list(path.rglob("*.tmp"))


def test_the_longest_names_fit(path):
    longest = f"{'s' * 60}.{'s' * 60}._domainkey.{'d' * 55}.example".ljust(253, "x")
    assert export(path, {}, {longest: b"key"}) == [longest]
    export(path, now=EXPORT_NOW)
    export(path, now=EXPORT_NOW + timedelta(hours=2))
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
