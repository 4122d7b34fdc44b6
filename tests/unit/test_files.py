"""Files are replaced as a whole, locked, and used only where no other user can change them."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

from dkimctl.files import (
    atomic_writer,
    create_files,
    directory_fault,
    fault_of,
    is_private,
    try_lock,
    wait_for_lock,
    write_private,
)

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes and links")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(path, text, **options):
    with atomic_writer(path, **options) as file:
        file.write(text)


def test_a_file_is_replaced_at_the_end_or_not_at_all_and_no_temporary_file_remains(tmp_path):
    path = tmp_path / "dkim.zone"
    path.write_text("old")
    with contextlib.suppress(KeyboardInterrupt), atomic_writer(path) as file:
        file.write("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    with atomic_writer(path) as file:
        file.write("new\n")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_bytes() == b"new\n"
    assert list(tmp_path.iterdir()) == [path]


@POSIX
@pytest.mark.parametrize("has_links", [True, False])
def test_new_files_are_written_all_or_none_and_over_nothing(tmp_path, monkeypatch, has_links):
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "b").write_text("mine")
    with pytest.raises(FileExistsError) as caught:
        create_files({tmp_path / "a": "x", tmp_path / "b": "y"})
    assert caught.value.strerror == "File exists"
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    create_files({tmp_path / "a": "x", tmp_path / "c": "y"}, private=[tmp_path / "a"])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a": "x", "b": "mine", "c": "y"
    }  # fmt: skip
    assert (mode_of(tmp_path / "a"), mode_of(tmp_path / "c") & 0o600) == (0o600, 0o600)


@POSIX
def test_permissions_are_kept_or_private_and_those_of_a_new_file_follow_the_umask(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        write(old, "x")
        write(new, "x")
        assert (mode_of(old), mode_of(new)) == (0o640, 0o640)
        write_private(old, "y")
    finally:
        os.umask(before)
    assert (old.read_text(), mode_of(old)) == ("y", 0o600)


@POSIX
def test_a_link_remains_a_link_and_a_device_is_written_directly(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write(link, "x")
    assert (link.is_symlink(), target.read_text()) == (True, "x")
    write(Path(os.devnull), "x")
    assert Path(os.devnull).is_char_device()


def test_waiting_ends_with_an_error_that_names_the_lock(tmp_path):
    path = tmp_path / "logins.lock"
    unlock = try_lock(path)
    assert unlock is not None
    with pytest.raises(TimeoutError, match=f"another process holds the lock {path}") as raised:
        wait_for_lock(path, seconds=0)
    assert raised.value.errno == errno.ETIMEDOUT
    unlock()
    wait_for_lock(path, seconds=0)()


User = namedtuple("User", "pw_name pw_uid pw_gid")
Group = namedtuple("Group", "gr_name gr_gid gr_mem")
ROOT, ME, YOU = User("root", 0, 0), User("me", 1000, 1000), User("you", 1001, 1001)
EVERYBODY = [ROOT, ME, YOU]


@pytest.mark.parametrize(
    ("group", "users", "expected"),
    [(Group("me", 1000, ["me"]), EVERYBODY, True),  # as on Debian
     (Group("me", 1000, ["me", "you"]), EVERYBODY, False),
     (Group("me", 1000, []), [ROOT, ME, YOU._replace(pw_gid=1000)], False),
     (Group("users", 100, []), [ROOT, ME._replace(pw_gid=100)], False),
     (Group("root", 0, []), EVERYBODY, True), (Group("me", 1000, []), [ROOT, YOU], False)],
)  # fmt: skip
def test_is_private(group, users, expected):
    assert is_private(group, users, own_uid=1000) is expected


OTHER = 65534  # nobody


@pytest.fixture
def home(tmp_path):
    """A home with a state directory, which holds a ledger."""
    if sys.platform == "win32":
        pytest.skip("needs POSIX owners and modes")
    home = tmp_path / "home"
    for directory in (home, home / "state"):
        directory.mkdir(mode=0o700)
    (home / "state" / "ledger.db").touch(mode=0o600)
    return home


def fault_in(home):
    return fault_of(home / "state" / "ledger.db")


def message_of(fault):
    assert fault is not None
    return fault.message


def test_a_private_place_and_what_is_missing_are_safe(home):
    for path in ("state/ledger.db", "state/none.db", "none/deep/ledger.db"):
        assert fault_of(home / path) is None


@pytest.mark.parametrize(
    ("name", "safe", "unsafe"),
    [("home", (0o755, 0o1777), (0o757,)), ("home/state", (0o755,), (0o770, 0o702)),
     ("home/state/ledger.db", (0o644, 0o400), (0o620, 0o602))],
)  # fmt: skip
def test_what_others_can_write_is_unsafe(home, name, safe, unsafe):
    path = home.parent / name
    for mode in safe:
        path.chmod(mode)
        assert fault_in(home) is None
    for mode in unsafe:
        path.chmod(mode)
        fault = fault_in(home)
        assert message_of(fault).endswith(f"{path}: other users can write to it")
        subprocess.run(fault.hint.split("`")[1], shell=True, check=True)
        assert fault_in(home) is None


def test_a_directory_above_that_a_shared_group_can_write_is_unsafe(home, needs_root):
    os.chown(home, -1, 4_000_000)  # a group without an entry
    for mode, is_safe in ((0o775, False), (0o1775, True)):
        home.chmod(mode)
        assert (fault_in(home) is None) is is_safe


class TestALinkToTheDirectory:
    @pytest.fixture
    def link(self, home):
        """A link in a directory of its own to the state directory, by way of another link."""
        for name in ("links", "more"):
            (home / name).mkdir(mode=0o700)
        (home / "more" / "home").symlink_to("../../home")
        (home / "links" / "state").symlink_to(home / "more" / "home" / "state")
        return home / "links" / "state"

    def test_of_the_user_is_followed(self, link):
        assert (link / "ledger.db").exists()
        assert directory_fault(link) is None
        assert directory_fault(link / ".." / "state") is None

    @pytest.mark.parametrize("name", ["links/state", "more/home"])
    def test_of_another_user_is_unsafe(self, home, link, needs_root, name):
        os.chown(home / name, OTHER, OTHER, follow_symlinks=False)
        expected = f"unsafe symbolic link {home / name}: it belongs to another user"
        assert message_of(directory_fault(link)).startswith(expected)

    @pytest.mark.parametrize("name", ["links", "more", "state"])
    def test_is_unsafe_where_others_can_write_at_either_end(self, home, link, name):
        (home / name).chmod(0o777)
        assert f"{home / name}: other users" in message_of(directory_fault(link))


def test_an_ordinary_user_may_use_what_root_owns_and_is_not_told_to_change_it(home, needs_root):
    program = (
        "import os; from pathlib import Path; from dkimctl.files import fault_of;"
        f"os.setuid({OTHER});"
        "print(fault_of(Path('/etc/passwd')), fault_of(Path('/tmp/none/ledger.db')),"
        " repr(fault_of(Path('/tmp/ledger.db')).hint))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"None None ''\n"


def test_where_access_is_denied_the_hint_says_whose_it_is(needs_root):
    state = Path(tempfile.mkdtemp())  # pytest's own are closed to others
    os.chown(state, OTHER, OTHER)
    mine, roots, directory = state / "ledger.db", "/etc/shadow", state / "dkimctl"
    mine.touch()
    directory.mkdir(mode=0o700)
    program = (
        "import os, sys; from pathlib import Path; from dkimctl.files import access_hint;"
        f"os.setuid({OTHER});"
        "[print(access_hint(Path(path), 'own')) for path in sys.argv[1:]]"
    )
    paths = [mine, roots, directory / "ledger.db", state / "new.db", "/var/lib/none/ledger.db"]

    def hints(home):
        done = subprocess.run(
            [sys.executable, "-c", program, *map(str, paths)],
            capture_output=True, check=True, text=True, env={"HOME": str(home)},
        )  # fmt: skip
        return done.stdout.splitlines()

    first, second, third, *rest = hints("/nowhere")
    me = "nobody"
    assert first == f"{mine} belongs to root: to take it over, run `sudo chown -R {me} {state}`"
    assert second == f"{roots} belongs to root: run it as that user: `sudo -u root dkimctl …`"
    assert third.endswith(f" run `sudo chown -R {me} {directory}`"), "not all that is beside it"
    assert rest == ["own", "own"]
    assert hints(state)[0].endswith(f"run `sudo chown {me} {mine}*`"), "not the whole home"
    shutil.rmtree(state)
