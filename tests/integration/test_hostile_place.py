"""Another user who can write where our files are gets no secret, and no key into DNS."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from dkimctl.files import is_own_group
from dkimctl.ledger.account_lock import account_lock
from dkimctl.ledger.ledger import Ledger
from dkimctl.service.database import open_store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX owners and modes")

OTHER = 65534  # nobody
SECRET = "topsecret-value"
SPECS = "- {sign_domain: example.com, selector: s1}\n"
COMMANDS = {
    "status": ["status"],
    "status of the sandbox": ["status", "--sandbox"],
    "login": ["login", "--client-id", "me", "--credential-store", "file", "--secret-stdin"],
    "logout": ["logout"],
    "token": ["token"],
    "api": ["api", "GET", "/x"],
    "register": ["register", "-"],
    "register --dry-run": ["register", "--dry-run", "-"],
    "register --sandbox": ["register", "--sandbox", "-"],
    "show-dns": ["show-dns"],
    "check-dns": ["check-dns", "--server", "127.0.0.1"],
    "rotate": ["rotate", "--older-than", "0d"],
    "rotate --retired": ["rotate", "--retired", "--no-check"],
    "ledger import": ["ledger", "import", "saved.json"],
    "ledger forget": ["ledger", "forget", "--assume-successors", "*"],
}
LEDGER_COMMANDS = [
    name for name in COMMANDS if name.startswith(("register", "show", "check", "rotate", "ledger"))
]


@pytest.fixture
def planted(cli, state, scripted_account, scripted_server, make_registration) -> Mapping[str, str]:
    """A login that sends secrets to another URL, and a ledger with another key; environment."""
    url = scripted_server.url
    state.mkdir(mode=0o700, parents=True)
    login = {"auth_url": url, "base_url": url, "client_id": "me", "credential_store": "file"}
    (state / "logins.json").write_text(json.dumps({"default": login}))
    (state / "logins.json").chmod(0o600)
    account = {"base_url": url, "client_id": "me"}
    with account_lock(state, **account, on_wait=lambda holder: None):
        pass
    with Ledger.open(state / "ledger.db", **account) as ledger:
        ledger.record([make_registration("example.com", "s1")])
    cli.write("saved.json", '{"items": []}')
    return {"DKIMCTL_CLIENT_SECRET": SECRET}


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def give(*paths: Path) -> None:
    for path in paths:
        os.chown(path, OTHER, OTHER, follow_symlinks=False)


def assert_refused(cli, server, place: Path, name: str, env: Mapping[str, str]) -> None:
    """The command ends with 2, names `place`, sends nothing, and changes no file."""
    words = COMMANDS[name]
    if name == "login":
        words = [*words, "--auth-url", server.url, "--base-url", server.url]
        env = {}
    before = contents(cli.home)
    done = cli(*words, env=env, stdin=SECRET if name == "login" else SPECS)
    assert (done.status, done.out) == (2, ""), done.err
    assert f" {place}: " in done.err
    assert "unsafe" in done.err
    assert "hint: " in done.err
    assert SECRET not in done.err
    assert server.requests == []
    assert contents(cli.home).items() >= before.items()


OF_ANOTHER_USER = [
    *((".", name) for name in COMMANDS),
    *(("logins.json", name) for name in ("status", "login", "logout", "token")),
    *(("ledger.db", name) for name in LEDGER_COMMANDS),
    *((f"ledger.db-{end}", name) for end in ("wal", "shm") for name in ("show-dns", "register")),
    ("register-*.lock", "register"),
    ("register-*.holder", "register"),
]


@pytest.mark.parametrize(("file", "name"), OF_ANOTHER_USER)
def test_what_belongs_to_another_user(
    cli, state, planted, scripted_server, needs_root, file, name
) -> None:
    if file.startswith("ledger.db-"):
        (state / file).touch(mode=0o600)
    if file == "logins.json":
        (state / file).write_text("not even parsed")
    [path] = [state] if file == "." else state.glob(file)
    give(path)
    assert_refused(cli, scripted_server, path, name, planted)


@pytest.mark.parametrize("name", ["status", "login", "token", "register", "show-dns"])
@pytest.mark.parametrize("is_above", [False, True])
def test_a_directory_that_others_can_write(
    cli, state, planted, scripted_server, name, is_above
) -> None:
    directory = state.parent if is_above else state
    directory.chmod(0o777)
    assert_refused(cli, scripted_server, directory, name, planted)


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("ledger.db", ["show-dns", "register"]),
        ("ledger.lock", ["register"]),
        ("logins.json", ["status", "login"]),
    ],
)
def test_a_dangling_link_in_place_of_a_file(
    cli, state, planted, scripted_server, file, names
) -> None:
    target = cli.home / "target"
    (state / file).unlink(missing_ok=True)
    (state / file).symlink_to(target)
    for name in names:
        assert_refused(cli, scripted_server, state / file, name, planted)
    assert not target.exists()


@pytest.mark.parametrize("file", ["logins.lock", "credentials.lock", "credentials.json"])
def test_a_dangling_link_where_a_login_is_stored(cli, state, login, account, file) -> None:
    state.mkdir(parents=True, mode=0o700)
    (state / file).symlink_to(cli.home / "target")
    done = login(account)
    assert done.status == (2 if file == "logins.lock" else 3)
    assert f"unsafe file {state / file}: it is a symbolic link" in done.err
    assert not (cli.home / "target").exists()


def test_a_shared_directory_is_refused_but_stays_shared(cli) -> None:
    shared = cli.home / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    done = cli("show-dns", "--sandbox", env={"DKIMCTL_STATE_DIR": str(shared)})
    assert done.status == 2
    assert f"unsafe directory {shared}: other users can write to it" in done.err
    assert "hint: name a directory of your own in DKIMCTL_STATE_DIR" in done.err


def test_a_credential_file_of_another_user(cli, state, planted, scripted_server, needs_root):
    (state / "credentials.json").write_text('{"dkimctl secret": "not even parsed"')
    (state / "credentials.json").chmod(0o600)
    give(state / "credentials.json")
    for words in (["token"], ["status"], ["logout"]):
        done = cli(*words)
        assert done.status == 3
        assert "it belongs to another user, " in done.err + done.out
        assert "run it as that user: `sudo -u " in done.err + done.out
    assert scripted_server.requests == []


class TestTheConfigFile:
    @pytest.fixture
    def config(self, cli, scripted_account, scripted_server) -> Path:
        """A config file in the default place that names a URL."""
        path = cli.home / ".config" / "dkimctl" / "config.yaml"
        path.parent.mkdir(mode=0o755, parents=True)
        url = scripted_server.url
        profile = f"{{auth_url: '{url}', base_url: '{url}', client_id: me}}"
        path.write_text(f"profiles: {{default: {profile}}}\n")
        path.chmod(0o644)
        cli.environment["DKIMCTL_CLIENT_SECRET"] = SECRET
        return path

    def test_that_others_can_write_is_refused_unless_it_is_named(
        self, cli, config, scripted_server
    ):
        config.chmod(0o646)
        done = cli("token")
        assert (done.status, scripted_server.requests) == (2, [])
        assert f"unsafe file {config}: other users can write to it" in done.err
        assert f"chmod go-w {config}" in done.err
        assert cli("token", "--config", config).status == 0
        assert cli("token", env={"DKIMCTL_CONFIG": str(config)}).status == 0

    def test_of_another_user_is_refused(self, cli, config, scripted_server, needs_root):
        give(config)
        done = cli("token")
        assert (done.status, scripted_server.requests) == (2, [])
        assert f"unsafe file {config}: it belongs to another user" in done.err
        assert "--config" in done.err

    def test_may_be_a_link_of_the_user(self, cli, config):
        config.symlink_to(config.rename(cli.home / "dkimctl.yaml"))
        assert cli("token").status == 0


class TestTheServicesDataFile:
    @pytest.fixture
    def data(self, cli) -> Path:
        path = cli.home / "data" / "service.db"
        open_store(path).close()
        return path

    @pytest.fixture
    def sandbox(self, cli) -> Path:
        assert cli("register", "--sandbox", "-", stdin=SPECS).status == 0
        return cli.home / ".local" / "share" / "dkimctl" / "sandbox.db"

    def assert_refused(self, cli, place: Path, data: Path) -> None:
        for words in (["serve", "--port", "0"], ["service", "client", "create"]):
            self.assert_one_refused(cli, place, *words, "--data", data)

    def assert_one_refused(self, cli, place: Path, *words: object) -> None:
        before = contents(cli.home)
        done = cli(*words, stdin=SPECS)
        assert (done.status, done.out) == (2, "")
        assert f" {place}: " in done.err
        assert "unsafe" in done.err
        assert contents(cli.home) == before

    @pytest.mark.parametrize("name", ["data", "data/service.db", "data/service.db-wal"])
    def test_of_another_user(self, cli, data, needs_root, name):
        (cli.home / "data" / "service.db-wal").touch(mode=0o600)
        give(cli.home / name)
        self.assert_refused(cli, cli.home / name, data)

    @pytest.mark.parametrize(("name", "mode"), [("data", 0o777), ("data/service.db", 0o666)])
    def test_that_others_can_write(self, cli, data, name, mode):
        (cli.home / name).chmod(mode)
        self.assert_refused(cli, cli.home / name, data)

    def test_may_be_where_a_group_without_others_can_write(self, cli, data):
        """As in a directory made under the umask 002, the usual one of Ubuntu."""
        data.parent.chmod(0o775)
        if not is_own_group(data.parent.stat().st_gid):
            pytest.skip("the user's group may have other members")
        assert cli("service", "client", "list", "--data", data).status == 0

    @pytest.mark.parametrize("target", ["data/service.db", "none"])
    def test_that_is_a_link(self, cli, data, target):
        link = cli.home / "link.db"
        link.symlink_to(cli.home / target)
        self.assert_refused(cli, link, link)
        assert not (cli.home / "none").exists()

    @pytest.mark.parametrize("mode", [0o777, 0o1777])
    def test_a_secret_is_not_written_where_others_can_replace_it(self, cli, data, mode):
        (cli.home / "open").mkdir()
        (cli.home / "open").chmod(mode)
        words = ("service", "client", "create", "--data", data, "--output", "open/secret.txt")
        self.assert_one_refused(cli, cli.home / "open", *words)
        assert cli("service", "client", "list", "--data", data).out == ""

    @pytest.mark.parametrize("name", ["/", ".", ""])
    def test_that_is_a_directory(self, cli, name):
        done = cli("service", "client", "list", "--data", name)
        assert (done.status, "hint: name a data file in it" in done.err) == (2, True), done.err

    def test_of_the_sandbox(self, cli, sandbox, needs_root):
        give(sandbox)
        self.assert_one_refused(cli, sandbox, "register", "--sandbox", "--refresh", "-")


def test_help_and_completion_work_in_an_unsafe_place(cli, state, planted) -> None:
    state.chmod(0o777)
    for words in (["--version"], ["--help"], ["register", "--help"], ["completion", "bash"]):
        done = cli(*words)
        assert (done.status, done.err) == (0, ""), words
    assert cli(env={"_DKIMCTL_COMPLETE": "profiles"}) == (0, "", "")


@pytest.mark.parametrize("umask", [0, 0o777])
def test_what_is_created_is_private_whatever_the_umask(cli, login, account, umask) -> None:
    cli.at_start(f"import os\nos.umask({umask})\n")
    for _ in range(2):  # the second run uses what the first one has made
        assert login(account).status == 0
        assert cli("register", "--sandbox", "-", stdin=SPECS).status == 0
        assert cli("service", "client", "create").status == 0
        shutil.rmtree(cli.home / "made", ignore_errors=True)
        (cli.home / "made").mkdir()
        done = cli("service", "client", "create", "--output", "made/secret.txt")
        assert done.status == 0, done.err
        assert cli("show-dns", "--sandbox").status == 0
    made = [path for name in (".local", "made") for path in (cli.home / name).rglob("*")]
    made.append(cli.home / ".local")
    assert {path.name for path in made} >= {"credentials.json", "logins.json", "ledger.db",
                                            "sandbox.db", "service.db", "secret.txt"}  # fmt: skip
    modes = {path: path.stat().st_mode & 0o777 for path in made}
    assert modes == {path: 0o700 if path.is_dir() else 0o600 for path in made}
