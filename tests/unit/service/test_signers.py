"""Which keys sign; each private key says whose it is."""

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
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"example.com": "new"}
    assert plan.by_domain["example.com"].private_key == f"{KEY}example.com new".encode()
    assert plan.left_out == {"not yet in effect": 1, "superseded": 1}


def test_of_keys_with_one_start_date_the_latest_registered_signs(store, register):
    register("example.com", "a", regist_date="2021-02-01T00:00:01+00:00")
    register("example.com", "b", regist_date="2021-02-01T09:00:00+09:00")
    assert selectors(read_plan(store, NOW)) == {"example.com": "a"}


def test_a_disabled_registration_leaves_the_one_before_it(store, register):
    register("example.com", "s1")
    register("example.com", "s2", "2021-02-01T00:00+00:00", enable=False)
    register("off.example", "s1", enable=False)
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"example.com": "s1"}
    assert plan.left_out == {"disabled": 2}


def test_keys_of_a_deleted_client_are_left_out_and_those_of_a_disabled_one_are_not(store, register):
    register("one.example", "s1")
    register("two.example", "s1", client_id="second")
    change_state(store, "first", ClientState.DISABLED)
    change_state(store, "second", ClientState.DELETED)
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"one.example": "s1"}
    assert plan.left_out == {"of deleted clients": 1}


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
def test_a_default_registration_is_for_domains_without_a_key(store, register, default):
    register("us.example", "own")
    register("us.example", "third", "2021-06-01T00:00+00:00", default=default)
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"us.example": "own"}
    assert third_party(plan) == "third._domainkey.us.example"
    assert [key.selector for key in plan.keys] == ["own", "third"]
    assert not plan.left_out


def test_a_default_registration_signs_its_own_domain_if_nothing_else_does(store, register):
    register("us.example", "third", default=1)
    plan = read_plan(store, NOW)
    assert selectors(plan) == {"us.example": "third"}
    assert third_party(plan) == "third._domainkey.us.example"
    assert len(plan.keys) == 1


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


@pytest.mark.parametrize("client_id", ["unknown", "second"])
def test_an_unknown_or_deleted_client_cannot_be_chosen(store, register, client_id):
    change_state(store, "second", ClientState.DELETED)
    with pytest.raises(NegativeAnswer, match="--third-party-client"):
        read_plan(store, NOW, client_id)


@pytest.mark.parametrize(
    ("domain", "selector"),
    [
        ("../etc", "s1"), ("example.com", "../../x"), ("example.com", "a/b"), ("a b.com", "s1"),
        ("example.com", "%"), ("*.example.com", "s1"), ("example.com", "s1\n* x"),
        ("EXAMPLE.com", "s1"), ("example.com:x", "s1"), ("example.com", ""),
    ],
)  # fmt: skip
def test_names_that_nobody_can_have_registered_are_refused(store, register, domain, selector):
    register(domain, selector)
    with pytest.raises(UsageError, match="invalid registration"):
        read_plan(store, NOW)


def test_a_key_with_another_passphrase_than_the_rest_is_refused(store, register):
    register("example.com", "s1")
    with store.writing() as connection:
        key = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
        connection.execute(text("UPDATE registrations SET private_key = :key"), {"key": key})
    with pytest.raises(UsageError, match="another passphrase"):
        read_plan(store, NOW)


def test_no_private_key_is_in_the_representation(store, register):
    register("example.com", "s1")
    assert "key of" not in repr(read_plan(store, NOW))


def test_the_first_and_last_dates_that_can_be_registered_are_understood(store, register):
    register("first.example", "s1", "0001-01-01T00:00+23:59")
    register("last.example", "s1", "9999-12-31T23:59-23:59")
    assert selectors(read_plan(store, NOW)) == {"first.example": "s1"}


@pytest.mark.parametrize("date", ["", "soon", "2021-01-01T00:00"])
def test_a_date_that_the_service_does_not_write_is_an_error(store, register, date):
    register("example.com", "s1", date)
    with pytest.raises(UsageError, match=r"invalid registration 's1' of 'example\.com'"):
        read_plan(store, NOW)


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signer runs there")

EXPORT_NOW = datetime(2027, 1, 1, tzinfo=UTC)
OLD_TABLE, NEW_TABLE = "KeyTable.0123456789abcdef", "KeyTable.fedcba9876543210"
EXPORT_KEY, OTHER_KEY = "s1._domainkey.example.com", "s2._domainkey.example.com"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "export"


@contextmanager
def opened(path):
    with open_directory(path, "opendkim") as directory:
        yield directory


def export(path, files=None, keys=None, now=EXPORT_NOW):
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
        export(path, {OLD_TABLE: "table"}, {EXPORT_KEY: b"key"})
    finally:
        os.umask(old)
    assert {mode(path), mode(path / "keys")} == {0o700}
    assert {mode(file) for file in path.rglob("*") if file.is_file()} == {0o600}


def test_keys_are_written_before_the_tables_that_name_them(path):
    written = export(path, {OLD_TABLE: "a", "opendkim.conf": "b"}, {EXPORT_KEY: b"key"})
    assert written == [EXPORT_KEY, OLD_TABLE, "opendkim.conf"]


def test_without_a_change_nothing_is_rewritten(path):
    export(path, {OLD_TABLE: "table"}, {EXPORT_KEY: b"key"})
    before = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in path.rglob("*")}
    assert (
        export(
            path,
            {OLD_TABLE: "table"},
            {EXPORT_KEY: b"key"},
            EXPORT_NOW + timedelta(days=1),
        )
        == []
    )
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
    used, unused = ({}, {EXPORT_KEY: b"key"}), ({}, {})
    export(path, *used, EXPORT_NOW)
    export(path, *unused, EXPORT_NOW)
    export(path, *used, EXPORT_NOW + timedelta(minutes=50))
    export(path, *unused, EXPORT_NOW + timedelta(minutes=90))
    export(path, *unused, EXPORT_NOW + timedelta(minutes=140))
    assert f"keys/{EXPORT_KEY}" in contents(path)


def test_a_clock_that_was_ahead_does_not_keep_keys(path):
    export(path, {}, {EXPORT_KEY: b"key"}, EXPORT_NOW)
    export(path, now=EXPORT_NOW + timedelta(days=1000))
    export(path, now=EXPORT_NOW)
    export(path, now=EXPORT_NOW + timedelta(minutes=61))
    assert contents(path) == {}


@pytest.mark.parametrize("damage", [b"", b"cut", b"another key"])
def test_a_damaged_key_is_written_again(path, damage):
    export(path, {}, {EXPORT_KEY: b"key"})
    (path / "keys" / EXPORT_KEY).write_bytes(damage)
    assert export(path, {}, {EXPORT_KEY: b"key"}) == [EXPORT_KEY]


def test_a_key_that_others_can_read_is_replaced_by_one_that_they_cannot(path):
    export(path, {}, {EXPORT_KEY: b"key"})
    (path / "keys" / EXPORT_KEY).chmod(0o644)
    assert export(path, {}, {EXPORT_KEY: b"key"}) == [EXPORT_KEY]
    assert mode(path / "keys" / EXPORT_KEY) == 0o600


def test_files_of_others_stay(path):
    export(path)
    foreign = {"README": b"ours", "KeyTable": b"theirs", "keys/backup.pem": b"old", "keys/s1": b""}
    for name, content in foreign.items():
        (path / name).write_bytes(content)
    (path / "keys" / EXPORT_KEY).symlink_to(path / "README")
    export(path, now=EXPORT_NOW + timedelta(days=1))
    export(path, now=EXPORT_NOW + timedelta(days=2))
    assert {name: contents(path)[name] for name in foreign} == foreign
    assert (path / "keys" / EXPORT_KEY).is_symlink()


def test_a_directory_of_something_else_is_refused(path):
    path.mkdir(mode=0o700)
    (path / "mail.private").write_text("key")
    with pytest.raises(UsageError, match=r"not of an export, such as mail\.private"):
        export(path, {}, {EXPORT_KEY: b"key"})
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


@pytest.mark.parametrize("name", [f"keys/{EXPORT_KEY}", OLD_TABLE])
def test_a_link_in_place_of_a_file_is_refused_before_anything_is_written(path, tmp_path, name):
    export(path)
    (tmp_path / "victim").write_text("theirs")
    (path / name).symlink_to(tmp_path / "victim")
    with pytest.raises(UsageError, match="symbolic link"):
        export(path, {OLD_TABLE: "table"}, {OTHER_KEY: b"other", EXPORT_KEY: b"key"})
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
        directory.write({OLD_TABLE: "table"}, {EXPORT_KEY: b"key"}, EXPORT_NOW)
    assert {mode(path), mode(path / "keys")} == {0o750}
    assert {mode(path / name) for name in (OLD_TABLE, f"keys/{EXPORT_KEY}")} == {0o640}


def test_leftovers_of_a_killed_export_are_deleted(path):
    export(path)
    leftover = path / "keys" / ".dkimctl-0123456789abcdef.tmp"
    leftover.write_text("half a key")
    export(path)
    assert not leftover.exists()


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
    selector = ".".join(["s" * 60] * 3)
    domain = f"{'d' * 55}.example"[: 253 - len(f"{selector}._domainkey.")]
    name = f"{selector}._domainkey.{domain}"
    assert len(f"{selector}._domainkey.{domain}") > 240
    longest = name + "x" * (253 - len(name))
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
