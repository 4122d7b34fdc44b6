"""Which keys sign; each private key says whose it is."""

from __future__ import annotations

import os
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


@pytest.mark.parametrize("default", [1, -1])
@pytest.mark.parametrize("has_own", [True, False])
def test_the_latest_default_registration_is_for_domains_without_a_key(
    store, register, default, has_own
):
    if has_own:
        register("us.example", "own")
    register("us.example", "third", "2021-03-01T00:00+00:00", default=default)
    register("b.example", "s1", "2021-02-01T00:00+00:00", default=1)
    register("c.example", "s1", "2022-01-01T00:00+00:00", default=1)
    register("d.example", "s1", "2021-04-01T00:00+00:00", default=1, enable=False)
    plan = read_plan(store, NOW)
    own = "own" if has_own else "third"
    assert selectors(plan) == {"us.example": own, "b.example": "s1"}
    assert third_party(plan) == "third._domainkey.us.example"
    assert {key.fqdn for key in plan.keys} == {
        f"{own}._domainkey.us.example", "third._domainkey.us.example", "s1._domainkey.b.example"
    }  # fmt: skip
    assert plan.left_out == {"not yet in effect": 1, "disabled": 1}


def test_no_client_signs_mail_of_another_client_without_being_chosen(store, register):
    register("us.example", "s1", default=1)
    register("them.example", "s1", client_id="second")
    later = "2021-06-01T00:00:00+00:00"
    register("us.example", "s2", client_id="second", default=1, regist_date=later)
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"us.example": "s1", "them.example": "s1"}
    assert (plan.third_party, plan.third_party_owners) == (None, ["first"])
    assert plan.contested == ["us.example"]
    assert plan.left_out == {"of a second client of the domain": 1}
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


@pytest.mark.parametrize("in_group", [False, True])
def test_keys_come_before_the_tables_and_nobody_else_can_read_them(path, in_group):
    import grp

    group = grp.getgrgid(os.getegid()).gr_name if in_group else None
    old = os.umask(0)
    try:
        files = {OLD_TABLE: "a", "opendkim.conf": "b"}, {EXPORT_KEY: b"key"}
        assert export(path, *files, group=group) == [EXPORT_KEY, OLD_TABLE, "opendkim.conf"]
    finally:
        os.umask(old)
    assert {mode(path), mode(path / "keys")} == {0o750 if in_group else 0o700}
    private = 0o640 if in_group else 0o600
    assert {mode(path / name) for name in (OLD_TABLE, f"keys/{EXPORT_KEY}")} == {private}
    before = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in path.rglob("*")}
    assert export(path, *files, EXPORT_NOW + timedelta(days=1), group=group) == []
    after = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in path.rglob("*")}
    assert after == before, "without a change nothing is rewritten"
    key = path / "keys" / EXPORT_KEY
    for spoil in (lambda: key.chmod(0o644), lambda: key.write_bytes(b"another key")):
        spoil()
        assert export(path, *files, group=group) == [EXPORT_KEY]
        assert (mode(key), key.read_bytes()) == (private, b"key")


@pytest.mark.parametrize(
    ("uses", "is_kept"),  # at these minutes the key is used, or not
    [
        ([(0, True), (0, False), (60, False)], True),
        ([(0, True), (0, False), (61, False)], False),
        ([(0, True), (0, False), (50, True), (90, False), (140, False)], True),
        ([(0, True), (10**6, False), (0, False), (61, False)], False),  # a clock that was ahead
    ],
)
def test_what_is_no_longer_in_use_stays_for_an_hour(path, uses, is_kept):
    longest = f"{'s' * 60}.{'s' * 60}._domainkey.{'d' * 55}.example".ljust(253, "x")
    for minutes, is_used in uses:
        files = ({OLD_TABLE: "old"}, {longest: b"key"}) if is_used else ({NEW_TABLE: "new"}, {})
        export(path, *files, EXPORT_NOW + timedelta(minutes=minutes))
    names = {NEW_TABLE} | ({OLD_TABLE, f"keys/{longest}"} if is_kept else set())
    assert contents(path).keys() == names


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


STATE = ".dkimctl-export.json"
LINKED = (f"keys/{EXPORT_KEY}", OLD_TABLE)


@pytest.mark.parametrize(
    ("spoil", "words", "message"),
    [
        (lambda path: path.chmod(0o777), {}, "other users can write to it"),
        *(
            (lambda path, state=state: (path / STATE).write_text(state), {}, "damaged")
            for state in ("", "[]", '{"format": "opendkim", "unused": {"x": 1}}')
        ),
        (lambda path: (path / STATE).rename(path / "key"), {}, "not of an export, such as key"),
        (lambda path: (path / "keys").rmdir() or (path / "keys").symlink_to("/no"), {}, "link"),
        *(
            (lambda path, name=name: (path / name).symlink_to(path.parent / "victim"), {}, "link")
            for name in LINKED
        ),
        (lambda path: None, {"kind": "rspamd"}, "for another signer than rspamd"),
        (lambda path: None, {"group": "no-such-group"}, "--group"),
    ],
    ids=range(10),
)
def test_what_others_have_made_or_could_change_is_refused_first(path, spoil, words, message):
    victim = path.parent / "victim"
    victim.write_text("theirs")
    export(path)
    spoil(path)
    with pytest.raises(UsageError, match=message):
        export(path, {OLD_TABLE: "table"}, {OTHER_KEY: b"other", EXPORT_KEY: b"key"}, **words)
    assert victim.read_text() == "theirs"
    assert not (path / "keys" / OTHER_KEY).exists()


@pytest.mark.parametrize("name", ["a b", "a:b", "50%", "a#b", "a$b", 'a"b', "ä"])
def test_a_path_that_tables_cannot_hold_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="characters"):
        export(tmp_path / name)
    with pytest.raises(UsageError, match=r"directory .*/no does not exist"):
        export(tmp_path / "no" / "export")
    assert not any(tmp_path.iterdir())


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

    files = opendkim_files(plan, directory)
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

    of_rspamd = rspamd_files(plan, directory)
    no_keys = rspamd_files(Plan({}, None, {}, [], []), directory)
    assert of_rspamd["dkim_signing.conf"] == no_keys["dkim_signing.conf"]
    assert "@" not in no_keys["dkim_signing.conf"]
    lines = of_rspamd["selectors.map"].splitlines()
    assert dict(line.split() for line in lines) == {
        domain: key.fqdn if domain == "*" else key.selector for domain, key in expected.items()
    }
