"""Credentials in a real Secret Service: a headless gnome-keyring with its own D-Bus."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dkimctl.credentials.store import Account, Kind, entry_name
from keyrings import FILE_KEYRING, HUNG_KEYRING
from processes import login_words as words_of_login

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a Secret Service")

# No service directories: the bus starts no other program, so no prompt can appear.
_BUS = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:dir={directory}</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
_DAEMON = (
    'echo "$$ $DBUS_SESSION_BUS_ADDRESS"; '
    "exec gnome-keyring-daemon --foreground --unlock --components=secrets"
)
_SECRETS = "org.freedesktop.secrets"


class SecretService:
    """An unlocked gnome-keyring-daemon with its files in `home`."""

    def __init__(self, home: Path, environment: dict[str, str], directory: Path) -> None:
        """`directory` holds sockets, so its path must be short."""
        bus = directory / "bus.conf"
        bus.write_text(_BUS.format(directory=directory), encoding="utf-8")
        with (directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["dbus-run-session", f"--config-file={bus}", "--", "sh", "-c", _DAEMON],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                cwd=home, env=environment | {"XDG_RUNTIME_DIR": str(directory)},
            )  # fmt: skip
        self._process.stdin.write(b"password of the keyring")
        self._process.stdin.close()
        started = self._process.stdout.readline().decode().split()
        assert started, (directory / "log").read_text()
        self._pid, self.address = int(started[0]), started[1]

    def wait_until_unlocked(self) -> None:
        deadline = time.monotonic() + 60
        while "boolean false" not in self._is_locked():
            assert time.monotonic() < deadline, "the keyring did not start"
            time.sleep(0.05)

    def lock(self) -> None:
        collection = "array:objpath:/org/freedesktop/secrets/collection/login"
        self._send("/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock", collection)
        assert "boolean true" in self._is_locked()

    def pause(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    def close(self) -> None:
        if self._process.poll() is None:
            self.resume()
            os.kill(self._pid, signal.SIGTERM)
        self._process.wait(60)  # the bus ends with the daemon
        self._process.stdout.close()

    def _is_locked(self) -> str:
        return self._send(
            "/org/freedesktop/secrets/aliases/default", "org.freedesktop.DBus.Properties.Get",
            "string:org.freedesktop.Secret.Collection", "string:Locked",
        )  # fmt: skip

    def _send(self, path: str, method: str, *arguments: str) -> str:
        words = [f"--bus={self.address}", "--print-reply", f"--dest={_SECRETS}", path, method]
        return subprocess.run(
            ["dbus-send", *words, *arguments], capture_output=True, text=True, timeout=60
        ).stdout


@pytest.fixture
def secret_service(cli, needs_tool) -> Iterator[SecretService]:
    """A Secret Service that every command of `cli` finds."""
    for tool in ("dbus-run-session", "dbus-send", "gnome-keyring-daemon"):
        needs_tool(tool)
    with tempfile.TemporaryDirectory(prefix="dkimctl-") as directory:
        service = SecretService(cli.home, cli.environment, Path(directory))
        try:
            service.wait_until_unlocked()
            cli.environment["DBUS_SESSION_BUS_ADDRESS"] = service.address
            yield service
        finally:
            service.close()


@pytest.fixture
def login_words(account) -> list[str]:
    login, _, _, *more = words_of_login(account)
    return [login, *more]  # the keyring is the default


@pytest.fixture
def logged_in(cli, secret_service, account, login_words) -> str:
    """Log in with the keyring; returns the messages."""
    done = cli(*login_words, stdin=account["DKIMCTL_CLIENT_SECRET"])
    assert (done.status, done.out) == (0, "")
    return done.err


@pytest.fixture
def stored_token(cli, account) -> Callable[..., dict]:
    """Read the token from the keyring as another program does, after changing some fields."""
    owner = Account(*(account[f"DKIMCTL_{name}"] for name in ("AUTH_URL", "BASE_URL", "CLIENT_ID")))

    def run(operation: str, text: str = "") -> str:
        words = [operation, entry_name(owner, Kind.TOKEN), owner.client_id]
        return subprocess.run(
            [sys.executable, "-m", "keyring", *words], env=cli.environment,
            input=text, capture_output=True, text=True, timeout=60,
        ).stdout  # fmt: skip

    def stored_token(**changes) -> dict:
        if changes:
            run("set", json.dumps(json.loads(run("get")) | changes))
        return json.loads(run("get") or "{}")

    return stored_token


def assert_fails_in_time(cli, *words: str, says: str) -> str:
    """Run a command that fails because of the keyring; returns its messages."""
    begun = time.monotonic()
    done = cli(*words)
    assert time.monotonic() - begun < 20
    assert (done.status, done.out) == (3, "")
    assert says in done.err
    return done.err


def assert_names_the_alternatives(said: str) -> None:
    for way in ("DKIMCTL_CLIENT_ID", "DKIMCTL_CLIENT_SECRET", "--credential-store file"):
        assert way in said


def test_a_login_is_stored_only_in_the_keyring_and_its_token_reused(
    cli, logged_in, account, stored_token
):
    assert "the secret is in the keyring (SecretService Keyring)" in logged_in
    assert "warning" not in logged_in
    done = cli("token", "--verbose")
    assert done.out == f"{stored_token()['access_token']}\n"
    assert "/oauth2/token" not in done.err
    status = cli("status", "--format", "json").json
    assert status["secret_source"] == "keyring (SecretService Keyring)"
    assert status["token_expires_at"]
    files = [path.read_bytes() for path in cli.home.rglob("*") if path.is_file()]
    assert files
    for private in (account["DKIMCTL_CLIENT_SECRET"], stored_token()["access_token"]):
        assert not any(private.encode() in data for data in files)


def test_a_logout_empties_the_keyring(cli, logged_in, stored_token):
    assert stored_token()
    for _ in range(2):
        assert cli("logout").status == 0
    assert stored_token() == {}
    status = cli("status")
    assert status.status == 3
    assert "no secret is stored" in status.out
    # gnome-keyring may read its file again after a change, and has no collection meanwhile.
    deadline = time.monotonic() + 60
    while "cannot be opened" in (error := cli("token").err):
        assert time.monotonic() < deadline, error
    assert "has no client secret" in error


def test_a_locked_keyring_is_an_error_that_names_the_alternatives(
    cli, logged_in, secret_service, login_words, account
):
    secret_service.lock()
    said = assert_fails_in_time(cli, "token", says="the keyring is locked")
    assert "unlock it" in said
    assert_names_the_alternatives(said)
    assert_fails_in_time(cli, "logout", says="the keyring is locked")
    status = cli("status")
    assert status.status == 3
    assert "the keyring is locked" in status.out
    login = cli(*login_words, stdin=account["DKIMCTL_CLIENT_SECRET"])
    assert login.status == 3
    assert "the keyring is locked" in login.err
    assert cli("token", env=account).status == 0, "the environment needs no keyring"


def test_doctor_says_that_a_keyring_is_locked_or_hangs(cli, logged_in, secret_service):
    def credentials() -> dict[str, str]:
        done = cli("doctor", "--offline", "--format", "json")
        [found] = [item for item in done.json["items"] if item["check"] == "credentials"]
        return found

    found = credentials()
    assert (found["state"], "SecretService" in found["message"]) == ("ok", True)
    secret_service.pause()
    found = credentials()
    assert (found["state"], "did not answer" in found["message"]) == ("wrong", True)
    secret_service.resume()
    secret_service.lock()
    found = credentials()
    assert (found["state"], found["message"]) == ("wrong", "the keyring is locked")


def test_a_hung_keyring_ends_the_command_after_3_seconds(cli, logged_in, secret_service):
    secret_service.pause()
    said = assert_fails_in_time(cli, "token", says="the keyring did not answer within 3 s")
    assert_names_the_alternatives(said)
    said = assert_fails_in_time(cli, "logout", says="the keyring did not answer within 3 s")
    assert "may still be stored" in said
    assert "run `dkimctl logout`" in said
    assert "DKIMCTL_CLIENT_SECRET" not in said, "that would not forget anything"
    begun = time.monotonic()
    status = cli("status")
    assert time.monotonic() - begun < 20
    assert status.status == 3
    assert "did not answer" in status.out
    secret_service.resume()
    assert cli("token", "--verbose").err == "", "nothing was lost"
    assert cli("logout").status == 0


def test_a_keyring_that_hangs_during_a_login(cli, secret_service, login_words, account):
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with cli.start(*login_words, **options) as process:
        secret_service.pause()
        begun = time.monotonic()
        out, err = process.communicate(account["DKIMCTL_CLIENT_SECRET"].encode(), timeout=30)
    assert time.monotonic() - begun < 20
    assert (process.returncode, out) == (3, b"")
    assert b"did not answer" in err
    secret_service.resume()
    assert cli("status").status == 3, "nobody is logged in"


def test_on_a_terminal_the_wait_for_a_slow_keyring_is_announced(
    cli, logged_in, secret_service, on_terminal, stored_token
):
    token = stored_token()["access_token"]
    secret_service.pause()
    unlocking = threading.Timer(5, secret_service.resume)
    unlocking.start()
    status, shown = on_terminal(["token"])
    unlocking.join()
    assert status == 0, shown
    note, answer = shown.split("\r\n", 1)
    assert note == "dkimctl: waiting for the keyring, which may be asking you to unlock it"
    assert answer.strip() == token


def test_on_a_terminal_the_wait_can_be_interrupted(cli, logged_in, secret_service, on_terminal):
    secret_service.pause()
    status, shown = on_terminal(["token"], [("waiting for the keyring", "\x03")])
    assert status == 130, shown


# As that of Windows, which has no room for more.
_SMALL = FILE_KEYRING.replace(
    "        self._store(self._load() |",
    """        if len(password.encode("utf-16-le")) > 2560:
            raise OSError(1783, "CredWrite", "The stub received bad data")
        self._store(self._load() |""",
)


def test_each_command_requests_a_token_too_long_for_the_keyring(cli, scripted_server, make_answer):
    cli.write("small.py", _SMALL)
    cli.environment |= {"PYTHONPATH": str(cli.home), "PYTHON_KEYRING_BACKEND": "small.Keyring"}
    token = "e" * 2000
    answer = {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
    scripted_server.answer = lambda request: make_answer(200, answer)
    url = scripted_server.url
    words = ["--auth-url", url, "--base-url", url, "--client-id", "id", "--secret-stdin"]
    login = cli("login", *words, stdin="the secret")
    assert login.status == 0
    assert "cannot hold the token; each command will get its own" in login.err
    for _ in range(2):
        done = cli("token")
        assert (done.status, done.out, done.err) == (0, f"{token}\n", "")
    issued = [one for one in scripted_server.requests if one.path == "/oauth2/token"]
    assert len(issued) == 3
    status = cli("status")
    assert (status.status, "(small Keyring)" in status.out) == (0, True)
    assert token[:9] not in (cli.home / "keyring.json").read_text()


def test_a_keyring_that_does_not_encrypt_needs_permission(cli, login_words, account):
    cli.write("small.py", FILE_KEYRING.replace("class Keyring", "class PlaintextKeyring"))
    cli.environment |= {"PYTHONPATH": str(cli.home)}
    cli.environment |= {"PYTHON_KEYRING_BACKEND": "small.PlaintextKeyring"}
    secret = account["DKIMCTL_CLIENT_SECRET"]
    refused = cli(*login_words, stdin=secret)
    assert (refused.status, refused.out) == (3, "")
    assert "the plain-text keyring (small PlaintextKeyring) does not encrypt" in refused.err
    for way in ("login --credential-store file`", "login --allow-plaintext-keyring`"):
        assert way in refused.err
    assert not (cli.home / "keyring.json").exists()
    allowed = cli(*login_words, "--allow-plaintext-keyring", stdin=secret)
    assert allowed.status == 0
    assert "the secret is in the plain-text keyring (small PlaintextKeyring)" in allowed.err
    assert cli("token", "--verbose").err == "", "later commands need no permission"
    assert "plain-text keyring (small PlaintextKeyring)" in cli("status").out
    assert cli("logout").status == 0
    assert (cli.home / "keyring.json").read_text() == "{}"
    assert cli(*login_words, "--credential-store", "file", stdin=secret).status == 0
    assert (cli.home / "keyring.json").read_text() == "{}"


def test_a_hung_keyring_does_not_delay_the_exit(cli, account):
    """Python waits for the threads of a pool when it exits."""
    cli.write("pooled.py", HUNG_KEYRING)
    cli.environment |= {"PYTHONPATH": str(cli.home), "PYTHON_KEYRING_BACKEND": "pooled.Keyring"}
    words = ["--auth-url", account["DKIMCTL_AUTH_URL"], "--client-id", "id"]
    said = assert_fails_in_time(
        cli, "token", *words, "--base-url", account["DKIMCTL_BASE_URL"], says="did not answer"
    )
    assert_names_the_alternatives(said)


def test_without_a_keyring_login_names_two_alternatives_that_work_and_does_not_ask(
    cli, login_words, account, on_terminal
):
    secret = account["DKIMCTL_CLIENT_SECRET"]
    cli.environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={cli.home}/no-bus"
    status, shown = on_terminal([word for word in login_words if word != "--secret-stdin"])
    assert (status, "this machine has no keyring" in shown) == (3, True)
    assert "Client secret" not in shown
    refused = cli(*login_words, stdin=secret)
    assert refused.status == 3
    assert "this machine has no keyring" in refused.err
    assert_names_the_alternatives(refused.err)
    assert cli("token", env=account).status == 0
    token_alone = account | {"DKIMCTL_CLIENT_SECRET": "", "DKIMCTL_ACCESS_TOKEN": "a-token"}
    assert cli("status", env=token_alone).status == 0
    kept = cli(*login_words, "--credential-store", "file", stdin=secret)
    assert kept.status == 0, kept.err
    assert cli("token", "--verbose").err == ""


# What a command does for `keyring/NAME` in the config file.
_READ = """
import os
from dkimctl.credentials.keyring_store import KeyringStore
from dkimctl.credentials.keyring_store import ReferencedSecrets
from dkimctl.errors import CredentialsError
try:
    secrets = ReferencedSecrets(os.environ, KeyringStore(seconds=2))
    print(secrets.read("keyring/route53").reveal())
except CredentialsError as error:
    print(error.message)
"""


def test_a_secret_for_dns_is_read_as_the_keyring_program_stored_it(cli, secret_service):
    def read() -> str:
        words = [sys.executable, "-c", _READ]
        return subprocess.run(words, env=cli.environment, capture_output=True, text=True).stdout

    assert "no entry route53 of the service dkimctl-dns" in read()
    program = Path(sys.executable).with_name("keyring")
    command = [program, "set", "dkimctl-dns", "route53"]
    subprocess.run(command, input="hunter2", env=cli.environment, text=True, check=True)
    assert read() == "hunter2\n"
    secret_service.pause()
    assert read() == "cannot read keyring/route53: the keyring did not answer within 2 s\n"
    secret_service.resume()
    secret_service.lock()
    assert "cannot read keyring/route53: the keyring" in read()
