"""The files that the tools of BIND and Knot DNS write are read, and nothing else."""

from __future__ import annotations

import base64
import contextlib
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.models import Secret
from dkimctl.publishing.tsig_key import TsigKey, parse_tsig_key
from needs import program

SECRET = base64.b64encode(b"a secret of hunter2").decode()
KEY = TsigKey("k1.example", "hmac-sha512", Secret(SECRET))
BIND = f'key "k1.example" {{\n\talgorithm hmac-sha512;\n\tsecret "{SECRET}";\n}};\n'
KNOT = f"key:\n  - id: k1.example\n    algorithm: hmac-sha512\n    secret: {SECRET}\n"


def refusal(text: str | bytes) -> UsageError:
    """The error about a file with this text, which must not quote the secret."""
    with pytest.raises(UsageError) as caught:
        parse_tsig_key(text if isinstance(text, bytes) else text.encode())
    assert caught.value.hint
    shown = f"{caught.value.message} {caught.value.hint}"
    assert SECRET[:8] not in shown
    assert "hunter" not in shown
    return caught.value


@pytest.mark.parametrize(
    "command",
    [
        ["tsig-keygen", "-a", "hmac-sha512", "k1.example"],
        ["tsig-keygen", "-a", "hmac-sha512", "K1.Example."],
        ["keymgr", "-t", "k1.example", "hmac-sha512"],
    ],
)
def test_what_the_tools_write_is_read(command):
    tool = [program(command[0]), *command[1:]]
    written = subprocess.run(tool, capture_output=True, check=True).stdout
    key = parse_tsig_key(written)
    assert (key.name, key.algorithm) == ("k1.example", "hmac-sha512")
    assert len(base64.b64decode(key.secret.reveal())) == 64
    assert key.secret.reveal() in written.decode()


@pytest.mark.parametrize(
    "text",
    [BIND, f"// mine\nkey k1.example {{ secret {SECRET}; /* or */ algorithm HMAC-SHA512; }};",
     f'#\n\nkey"K1.example."{{algorithm"hmac-sha512";secret"{SECRET}";}};#end', KNOT,
     f"# hmac-sha512:k1:{SECRET}\n{KNOT}",
     f'key: [{{id: "k1.example", algorithm: hmac-sha512, secret: "{SECRET}"}}]',
     f"hmac-sha512:k1.example:{SECRET}\n", f"  hmac-sha512:k1.example.:{SECRET}"],
)  # fmt: skip
def test_the_key_is_the_same_however_it_is_written(text):
    assert parse_tsig_key(text.encode()) == KEY
    assert parse_tsig_key(text.replace("\n", "\r\n").encode()) == KEY


def test_without_an_algorithm_it_is_that_of_nsupdate():
    assert parse_tsig_key(f"k1:{SECRET}".encode()).algorithm == "hmac-sha256"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        (SECRET, "it is not as BIND or Knot DNS writes a key"),
        (BIND * 2, "it does not contain exactly one key"),
        ("key: []", "it does not contain exactly one key"),
        (KNOT + f"    secret: {SECRET}\n", "line 5: it is not as Knot DNS writes a key"),
        (f"key: &{SECRET}\n", "line 1: it is not as Knot DNS writes a key"),
        (KNOT.replace("secret:", f"{SECRET}:"), "a name, an algorithm and a secret"),
        (BIND.replace('";\n}', '"\n}'), "it is not as BIND or Knot DNS writes a key"),
        (BIND.replace("secret", SECRET), "it is not as BIND or Knot DNS writes a key"),
        (BIND.replace(SECRET, SECRET[1:]), "the secret is missing, or not valid base64"),
        (BIND.replace(SECRET, ""), "the secret is missing, or not valid base64"),
        (BIND.replace("hmac-sha512", "hmac-hunter2"), "the key has an unknown algorithm"),
        (BIND.replace("hmac-sha512", "hmac-md5"), "hmac-md5 is not secure"),
        (f"hmac-md5.sig-alg.reg.int.:k1:{SECRET}", "hmac-md5 is not secure"),
        (f"{SECRET}:k1:hmac-sha512", "the key has an unknown algorithm"),
        (BIND.replace("k1.example", "k1..example"), "the key has no valid name"),
        (BIND.encode("utf-16"), "it is binary"),
        (b"\x00" * 100, "it is not as BIND or Knot DNS writes a key"),
        ("/*" * 8000, "it is not as BIND or Knot DNS writes a key"),
        ("key {" * 3000, "it does not contain exactly one key"),
        ("key:\n" + "[" * 9000, "line 2: it is not as Knot DNS writes a key"),
    ],
)
def test_anything_else_is_refused(text, message):
    assert message in refusal(text).message


@given(st.binary(max_size=200) | st.text('key{};:"-\n ih/*#', max_size=60).map(str.encode))
def test_any_file_is_a_key_or_refused(data):
    with contextlib.suppress(UsageError):
        key = parse_tsig_key(data)
        assert base64.b64decode(key.secret.reveal(), validate=True)
