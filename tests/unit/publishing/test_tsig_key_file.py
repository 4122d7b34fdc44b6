"""The file of a TSIG key is read as ssh reads a private key."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from dkimctl.errors import UsageError
from dkimctl.publishing.tsig_key import read_tsig_key

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX owners and modes")

OTHER = 65534  # nobody
SECRET = "aHVudGVyMg=="


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A key file in a directory of its own."""
    tmp_path.chmod(0o755)
    path = tmp_path / "tsig.key"
    path.write_text(f"hmac-sha256:k1:{SECRET}\n", encoding="ascii")
    path.chmod(0o600)
    return path


def refusal(path: Path | str) -> str:
    """The error about this file, which must not quote it."""
    with pytest.raises(UsageError) as caught:
        read_tsig_key(str(path))
    assert caught.value.hint
    assert SECRET not in f"{caught.value.message} {caught.value.hint}"
    return f"{caught.value.message}; {caught.value.hint}"


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_that_only_its_owner_can_read_is_read(file, mode):
    file.chmod(mode)
    assert read_tsig_key(str(file)).secret.reveal() == SECRET


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o602, 0o666])
def test_a_file_that_others_can_read_or_change_is_refused(file, mode):
    file.chmod(mode)
    assert f"unsafe file {file}: other users can" in refusal(file)
    assert f"run `chmod 600 {file}`" in refusal(file)


def test_a_file_in_a_directory_that_others_can_change_is_refused(file):
    file.parent.chmod(0o777)
    assert f"unsafe directory {file.parent}: other users can write to it" in refusal(file)


def test_a_file_of_another_user_is_refused(file, needs_root):
    os.chown(file, OTHER, OTHER)
    assert "it belongs to another user" in refusal(file)


@pytest.fixture
def file_of_root(needs_root: None) -> Iterator[Path]:
    """A key file that the other user's group can reach; the process is that user for a while."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "tsig.key"
        path.write_text(f"k1:{SECRET}\n", encoding="ascii")
        path.parent.chmod(0o755)
        os.chown(path, 0, OTHER)
        groups, group = os.getgroups(), os.getegid()
        yield path
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def become_other() -> None:
    os.setgroups([])
    os.setegid(OTHER)
    os.seteuid(OTHER)


def test_the_group_of_a_service_may_read_a_file_of_root(file_of_root):
    file_of_root.chmod(0o640)
    become_other()
    assert read_tsig_key(str(file_of_root)).name == "k1"


@pytest.mark.parametrize("mode", [0o644, 0o646, 0o660])
def test_a_file_of_root_that_others_can_read_or_change_is_refused(file_of_root, mode):
    file_of_root.chmod(mode)
    become_other()
    assert "other users can" in refusal(file_of_root)


def test_a_link_to_a_key_file_is_followed(file):
    """As in the volumes of containers."""
    link = file.with_name("link")
    link.symlink_to(file.name)
    assert read_tsig_key(str(link)).name == "k1"
    file.chmod(0o644)
    assert "other users can read" in refusal(link)


def test_what_is_no_file_is_refused_at_once(file, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    for path in (fifo, tmp_path, "/dev/null"):
        assert f"cannot read the TSIG key file {path}: not a regular file" in refusal(path)


def test_a_missing_file_is_told_how_to_create_it(tmp_path):
    assert f"no such TSIG key file: {tmp_path / 'none'}; " in refusal(tmp_path / "none")
    assert "tsig-keygen" in refusal(tmp_path / "none")


def test_a_problem_in_the_file_names_it(file):
    file.write_text(f"key k1 {{ secret {SECRET} }};", encoding="ascii")
    assert f"TSIG key file {file}: it is not as BIND or Knot DNS writes a key" in refusal(file)


@pytest.mark.parametrize(
    "form", ["key k1 {{ secret {} }};", "hmac-none:k1:{}", "hmac-sha256:k1:{}!", "key: {}", "{}!"]
)
def test_a_traceback_with_local_variables_does_not_show_the_secret(file, form):
    file.write_text(form.format(SECRET), encoding="ascii")
    with pytest.raises(UsageError) as caught:
        read_tsig_key(str(file))
    report = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert SECRET not in "".join(report.format())
