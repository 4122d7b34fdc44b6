"""The real command line with a home of its own, and a live service."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

import hostile
from dated import DatedCli, serving_commands
from lives import Life, hosting
from processes import Cli, ServeProcess, converse, login_words

HERE = Path(__file__).parent
# The tests of all other modules are slow: they start many processes, or need daemons.
FAST = {"test_sandbox.py"}
LONGEST = "test_two_years.py"  # takes minutes, and comes first: others need not wait for it


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where the slow tests are left out, their modules are not imported: that takes seconds.

    One that is named on the command line is, so that pytest says that all of it is left out.
    """
    is_slow = collection_path.suffix == ".py" and collection_path.name not in FAST
    is_named = any(collection_path.name in argument for argument in config.args)
    return True if is_slow and not is_named and config.option.markexpr == "not slow" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.path.name not in FAST:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.path.name != LONGEST)


@pytest.fixture
def cli(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Cli(home)


@pytest.fixture
def shell(cli, needs_tool):
    """Run a block in a shell that stops at the first command that fails, where `cli` runs.

    Where the block sets a variable of `env`, it gets that value.
    """

    def shell(block: str, env: Mapping[str, str], **options) -> subprocess.CompletedProcess[str]:
        for name, value in env.items():
            setting = f"{name}={shlex.quote(value)}".replace("\\", r"\\")
            block = re.sub(rf'(?<!\S){name}=[^\s$"]+', setting, block)
        done = subprocess.run(
            [*cli.prefix, needs_tool("bash"), "-euo", "pipefail", "-c", block],
            cwd=cli.home, env=cli.environment | env, capture_output=True, text=True, check=False,
            **options,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        return done

    return shell


@pytest.fixture(scope="session")
def live_service(tmp_path_factory):
    """One service for all tests of a worker; each test has a client of its own."""
    service = ServeProcess(Cli(tmp_path_factory.mktemp("service")))
    yield service
    service.stop()


@pytest.fixture
def account(live_service):
    """The environment of a client of its own at the live service."""
    return live_service.create_client()


@pytest.fixture
def login(cli):
    """Log in with the secret on standard input, kept in a file."""

    def login(account, *words):
        secret = account["DKIMCTL_CLIENT_SECRET"]
        return cli(*login_words(account), *words, stdin=f"{secret}\n")

    return login


@pytest.fixture
def scripted_account(scripted_server, api_fixture, make_answer):
    """The environment of a client at a scripted server that issues tokens.

    Set `registering` on the server to an Answer (or None, to hang up) for other requests.
    """

    def answer(request):
        if request.path == "/oauth2/token":
            return make_answer(200, api_fixture("token.json"))
        return scripted_server.registering

    scripted_server.registering = make_answer(500)
    scripted_server.answer = answer
    return {
        "DKIMCTL_AUTH_URL": scripted_server.url,
        "DKIMCTL_BASE_URL": scripted_server.url,
        "DKIMCTL_CLIENT_ID": "id",
        "DKIMCTL_CLIENT_SECRET": "topsecret-value",
    }


@pytest.fixture
def serve():
    """Start a HostileServer that ends with the test; modules about DNS serve zones instead."""
    with hostile.servers() as start:
        yield start


@pytest.fixture
def state(cli):
    """The state directory."""
    return cli.home / ".local/state/dkimctl"


@pytest.fixture
def registering(cli, scripted_server, scripted_account, key_records, make_answer):
    """A service that registers every domain, which `cli` uses; `entries` is what it was sent.

    `on_request` may delay or replace an answer to /domain/dkim.
    """

    def item(entry):
        domain, selector = entry["sign_domain"], entry.get("selector", "chosen")
        values = {"fqdn": f"{selector}._domainkey.{domain}", "type": "TXT"}
        result = {"code": scripted_server.code, "message": "created"}
        return {"result": result, **entry, "selector": selector,
                "regist_date": scripted_server.regist_date,
                "setting_values": values | {"value": key_records[2048]}}  # fmt: skip

    def answer(request):
        if request.path == "/oauth2/token":
            return tokens(request)
        if request.method == "GET":  # such as for the time
            return make_answer(405, headers=scripted_server.date)
        entries = json.loads(request.body)["domains"]
        scripted_server.entries += entries
        replaced = scripted_server.on_request(request)
        items = list(map(item, entries))
        return replaced or make_answer(200, {"items": items}, headers=scripted_server.date)

    tokens = scripted_server.answer
    scripted_server.answer = answer
    scripted_server.entries = []
    scripted_server.on_request = lambda request: None
    scripted_server.regist_date = "2026-11-21T00:00:00+09:00"
    scripted_server.code = "201"
    scripted_server.date = {}  # the header, if it is not the true one
    cli.environment |= scripted_account
    return scripted_server


@pytest.fixture(scope="session")
def hosted(tmp_path_factory, needs_tool):
    """One network for all lives of a worker, and what runs commands in it."""
    needs_tool("nsupdate")
    directory = tmp_path_factory.mktemp("commands")
    with (
        hosting(tmp_path_factory.mktemp("network"), needs_tool) as network,
        serving_commands(directory, network.prefix(directory), needs_tool) as commands,
    ):
        yield network, commands


@pytest.fixture
def life(cli, hosted):
    """A new ledger on New Year's Day of 2027: see `Life`."""
    network, commands = hosted
    life = Life(DatedCli(cli.home, commands, datetime(2027, 1, 1, 10)), network)
    yield life
    life.clear()
    assert life.harmed() == []


@pytest.fixture
def on_terminal(cli):
    """Run a command on a pseudo-terminal; gives (exit status, all that it showed)."""
    if sys.platform == "win32":
        pytest.skip("needs a pseudo-terminal")
    return lambda words, answers=(), **options: converse(cli, words, answers, **options)
