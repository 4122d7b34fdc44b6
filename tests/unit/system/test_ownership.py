"""Only the user and root may own and change the user's files, and what leads to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dkimctl.files import Fault, directory_fault, fault_of, file_fault

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX owners and modes")

OTHER = 65534  # nobody


@pytest.fixture
def home(tmp_path):
    """A home with a state directory, which holds a ledger."""
    home = tmp_path / "home"
    for directory in (home, home / "state"):
        directory.mkdir(mode=0o700)
    (home / "state" / "ledger.db").touch(mode=0o600)
    return home


@pytest.fixture
def give(needs_root):
    """Let another user own a path; of a link, the link itself."""
    return lambda path: os.chown(path, OTHER, OTHER, follow_symlinks=False)


def fault_in(home):
    return fault_of(home / "state" / "ledger.db")


def message_of(fault):
    assert fault is not None
    return fault.message


def test_a_private_place_is_safe(home):
    assert fault_in(home) is None


@pytest.mark.parametrize("path", ["state/none.db", "none/ledger.db", "none/deep/ledger.db"])
def test_what_is_missing_is_safe(home, path):
    assert fault_of(home / path) is None


@pytest.mark.parametrize("name", ["home", "home/state", "home/state/ledger.db"])
def test_what_another_user_owns_is_unsafe(home, give, name):
    path = home.parent / name
    give(path)
    kind = "directory" if path.is_dir() else "file"
    # No hint: only the other user could make it safe again.
    assert fault_in(home) == Fault(f"unsafe {kind} {path}: it belongs to another user")


@pytest.mark.parametrize(
    ("name", "mode", "is_safe"),
    [("home", 0o755, True), ("home", 0o757, False), ("home", 0o1777, True),
     ("home/state", 0o755, True), ("home/state", 0o770, False), ("home/state", 0o702, False),
     ("home/state/ledger.db", 0o644, True), ("home/state/ledger.db", 0o400, True),
     ("home/state/ledger.db", 0o620, False), ("home/state/ledger.db", 0o602, False)],
)  # fmt: skip
def test_what_others_can_write_is_unsafe(home, name, mode, is_safe):
    path = home.parent / name
    path.chmod(mode)
    fault = fault_in(home)
    if is_safe:
        assert fault is None
        return
    assert message_of(fault).endswith(f"{path}: other users can write to it")
    subprocess.run(fault.hint.split("`")[1], shell=True, check=True)
    assert fault_in(home) is None


@pytest.mark.parametrize(("mode", "is_safe"), [(0o775, False), (0o1775, True)])
def test_a_directory_above_that_a_shared_group_can_write_is_unsafe(home, needs_root, mode, is_safe):
    home.chmod(mode)
    os.chown(home, -1, 4_000_000)  # a group without an entry
    assert (fault_in(home) is None) is is_safe


@pytest.mark.parametrize(("mode", "is_safe"), [(0o600, True), (0o640, False), (0o604, False)])
def test_a_private_file_may_not_be_read_either(home, mode, is_safe):
    path = home / "state" / "ledger.db"
    path.chmod(mode)
    assert file_fault(path) is None
    fault = file_fault(path, private=True)
    if is_safe:
        assert fault is None
    else:
        message = f"unsafe file {path}: other users can read or change it"
        assert fault == Fault(message, f"run `chmod 600 {path}`")


@pytest.mark.parametrize(
    ("arrange", "kind"),
    [
        (lambda path: path.symlink_to(path.parent.parent / "none"), "a symbolic link"),
        (lambda path: path.symlink_to("/etc/passwd"), "a symbolic link"),
        (lambda path: path.mkdir(), "not a regular file"),
        (os.mkfifo, "not a regular file"),
    ],
    ids=["dangling link", "link", "directory", "FIFO"],
)
def test_anything_but_a_regular_file_is_unsafe(home, arrange, kind):
    path = home / "state" / "ledger.db"
    path.unlink()
    arrange(path)
    assert message_of(fault_in(home)) == f"unsafe file {path}: it is {kind}"


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
    def test_of_another_user_is_unsafe(self, home, link, give, name):
        give(home / name)
        expected = f"unsafe symbolic link {home / name}: it belongs to another user"
        assert message_of(directory_fault(link)) == expected

    @pytest.mark.parametrize("name", ["links", "more", "state"])
    def test_is_unsafe_where_others_can_write_at_either_end(self, home, link, name):
        (home / name).chmod(0o777)
        assert f"{home / name}: other users" in message_of(directory_fault(link))


def test_a_relative_path_is_judged_from_the_working_directory(home, monkeypatch):
    monkeypatch.chdir(home / "state")
    assert directory_fault(Path()) is None
    assert directory_fault(Path("../state")) is None
    home.chmod(0o777)
    for directory in (Path(), Path("none"), Path("../state")):
        assert f"{home}: other users" in message_of(directory_fault(directory))


def test_an_ordinary_user_may_use_what_root_owns_and_is_not_told_to_change_it(home, needs_root):
    program = (
        "import os; from pathlib import Path; from dkimctl.files import fault_of;"
        f"os.setuid({OTHER});"
        "print(fault_of(Path('/etc/passwd')), fault_of(Path('/tmp/none/ledger.db')),"
        " repr(fault_of(Path('/tmp/ledger.db')).hint))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"None None ''\n"
