"""The file of a TSIG key is read as ssh reads a private key."""

from __future__ import annotations

import base64
import contextlib
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.models import Secret
from dkimctl.publishing.tsig_key import TsigKey, parse_tsig_key, read_tsig_key

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


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_file_that_others_can_read_or_change_is_refused(file, mode):
    file.chmod(mode)
    assert f"unsafe file {file}: other users can" in refusal(file)
    assert f"run `chmod 600 {file}`" in refusal(file)


def test_a_file_in_a_directory_that_others_can_change_is_refused(file):
    file.parent.chmod(0o777)
    assert f"unsafe directory {file.parent}: other users can write to it" in refusal(file)


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


def test_the_group_of_a_service_may_read_a_file_of_root_and_no_other_user(file_of_root):
    file_of_root.chmod(0o640)
    os.setgroups([])
    os.setegid(OTHER)
    os.seteuid(OTHER)
    assert read_tsig_key(str(file_of_root)).name == "k1"
    for mode in (0o644, 0o660):
        os.seteuid(0)
        file_of_root.chmod(mode)
        os.seteuid(OTHER)
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


@pytest.mark.parametrize(
    "form", ["key k1 {{ secret {} }};", "hmac-none:k1:{}", "hmac-sha256:k1:{}!", "key: {}"]
)
def test_a_traceback_with_local_variables_does_not_show_the_secret(file, form):
    file.write_text(form.format(SECRET), encoding="ascii")
    with pytest.raises(UsageError) as caught:
        read_tsig_key(str(file))
    report = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert SECRET not in "".join(report.format())


WRITTEN = base64.b64encode(b"a secret of hunter2").decode()
KEY = TsigKey("k1.example", "hmac-sha512", Secret(WRITTEN))
BIND = f'key "k1.example" {{\n\talgorithm hmac-sha512;\n\tsecret "{WRITTEN}";\n}};\n'
KNOT = f"key:\n  - id: k1.example\n    algorithm: hmac-sha512\n    secret: {WRITTEN}\n"


def text_refusal(text: str | bytes) -> UsageError:
    """The error about a file with this text, which must not quote the secret."""
    with pytest.raises(UsageError) as caught:
        parse_tsig_key(text if isinstance(text, bytes) else text.encode())
    assert caught.value.hint
    shown = f"{caught.value.message} {caught.value.hint}"
    assert WRITTEN[:8] not in shown
    assert "hunter" not in shown
    return caught.value


@pytest.mark.parametrize(
    "text",
    [BIND, f"// mine\nkey k1.example {{ secret {WRITTEN}; /* or */ algorithm HMAC-SHA512; }};",
     f'#\n\nkey"K1.example."{{algorithm"hmac-sha512";secret"{WRITTEN}";}};#end', KNOT,
     f"# hmac-sha512:k1:{WRITTEN}\n{KNOT}",
     f"hmac-sha512:k1.example:{WRITTEN}\n", f"  hmac-sha512:k1.example.:{WRITTEN}"],
)  # fmt: skip
def test_the_key_is_the_same_however_it_is_written(text):
    assert parse_tsig_key(text.encode()) == KEY
    assert parse_tsig_key(text.replace("\n", "\r\n").encode()) == KEY


def test_without_an_algorithm_it_is_that_of_nsupdate():
    assert parse_tsig_key(f"k1:{WRITTEN}".encode()).algorithm == "hmac-sha256"


NO_KEY = [
    "", WRITTEN, BIND * 2, "key: []", KNOT + f"  - id: {WRITTEN}\n", f"key: &{WRITTEN}\n",
    KNOT.replace("secret:", f"{WRITTEN}:"), BIND.replace('";\n}', '"\n}'),
    BIND.replace("secret", WRITTEN), BIND.encode("utf-16"), b"\x00" * 100, "/*" * 8000,
    "key {" * 3000, "key:\n" + "[" * 9000, rf'key: "\U00110000{WRITTEN}"', r'key: "\UFFFFFFFF"',
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "it is not one key as BIND or Knot DNS writes it") for text in NO_KEY),
        (BIND.replace(WRITTEN, WRITTEN[1:]), "the secret is missing, or not valid base64"),
        (BIND.replace(WRITTEN, ""), "the secret is missing, or not valid base64"),
        (BIND.replace("hmac-sha512", "hmac-hunter2"), "the key has an unknown algorithm"),
        (BIND.replace("hmac-sha512", "hmac-md5"), "hmac-md5 is not secure"),
        (f"hmac-md5.sig-alg.reg.int.:k1:{WRITTEN}", "hmac-md5 is not secure"),
        (f"{WRITTEN}:k1:hmac-sha512", "the key has an unknown algorithm"),
        (BIND.replace("k1.example", "k1..example"), "the key has no valid name"),
    ],
)
def test_anything_else_is_refused(text, message):
    assert message in text_refusal(text).message


@given(st.binary(max_size=200) | st.text('key{};:"-\n ih/*#', max_size=60).map(str.encode))
def test_any_file_is_a_key_or_refused(data):
    with contextlib.suppress(UsageError):
        key = parse_tsig_key(data)
        assert base64.b64decode(key.secret.reveal(), validate=True)
