"""Every command of the README runs, in its order, as it stands there; test_recipes has some."""

from __future__ import annotations

import json
import re
import shutil
import socket
import tomllib
from itertools import chain

import pytest

from readme import BLOCKS, README, RECIPES, ROOT, YAML, blocks

SPECS = YAML[0]


def without_pip(block: str) -> str:
    """The install commands need a package index; .ci/run runs them."""
    return re.sub(r"pip install '[^']*'( && pytest)?( && )?", "", block)


def test_every_block_is_run_by_a_test_of_this_module():
    marks = (
        "--sandbox",
        "pytest",
        "dkimctl login",
        "dkimctl register",
        "dkimctl show-dns",
        "dkimctl check-dns",
        "dkimctl rotate",
        "dkimctl ledger import",
        "dkimctl api",
        "dkimctl status",
        "dkimctl token",
        "dkimctl serve",
        "dkimctl service",
        "dkimctl completion",
        "tests/bench",
    )
    for block in BLOCKS:
        assert any(mark in block for mark in marks), block


def test_each_library_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.match(r"[\w-]+", line)[0] for line in wanted} - {"dkimctl"}
    _, table = README.split("| library |")
    rows = [row.split("|") for row in table.split("\n\n")[0].splitlines()[2:]]
    told = {name.strip(): row[2].strip() for row in rows for name in row[1].split(",")}
    assert set(told) == names
    assert all(told.values())


def test_the_first_command_prints_the_table(cli, on_terminal):
    shutil.copy(ROOT / "domains.example.yaml", cli.home)
    (block,) = blocks("--sandbox domains.example.yaml")
    _, *words = without_pip(block).split()
    status, shown = on_terminal(words)
    assert status == 0
    assert "201 created" in shown
    assert "created 3" in shown


@pytest.fixture
def at_service(cli, live_service, account):
    """The variables that the README's commands use, and the files that they read."""
    cli.write("domains.yaml", SPECS)
    cli.write("secret.txt", account["DKIMCTL_CLIENT_SECRET"] + "\n")
    client_id = account["DKIMCTL_CLIENT_ID"]
    return {
        "AUTH_URL": live_service.url,
        "BASE_URL": live_service.url,
        "CLIENT_ID": client_id,
        "CLIENT_SECRET": account["DKIMCTL_CLIENT_SECRET"],
        "DELIVERY_ID": live_service.operate("delivery", "add", client_id).out.strip(),
    }


def test_login_register_show_dns_and_api(cli, shell, needs_tool, at_service):
    needs_tool("named-checkzone")
    (login,) = blocks("--secret-stdin")
    shell(login, at_service)
    register = next(block for block in blocks("--dry-run"))
    done = shell(register, at_service)
    names = re.findall(r"_domainkey\.(\S+)\. ", done.stdout)
    assert names == ["example.com", "mail.example.com"]
    (again,) = blocks("--assign-selector")
    assert "already there 2" in shell(again, at_service).stderr
    for block in blocks("dkimctl show-dns"):
        if not any(mark in block for mark in ("--sandbox", "check-dns", *RECIPES)):
            shell(block, at_service)
    assert len(json.loads((cli.home / "records.json").read_text())["items"]) == 2
    assert (cli.home / "dkim.zone").read_text().count(" IN TXT ") == 2
    (api,) = blocks("dkimctl api")
    assert at_service["DELIVERY_ID"] in shell(api, at_service).stdout
    assert cli("logout").status == 0


def test_status_and_a_request_of_curl(shell, needs_tool, at_service, account):
    needs_tool("curl")
    (status,) = blocks("dkimctl status")
    assert "environment" in shell(status, account).stdout
    (curl,) = blocks("dkimctl token")
    done = shell(curl, at_service | account | {"NO_PROXY": "127.0.0.1"})
    assert at_service["DELIVERY_ID"] in done.stdout


def test_login_asks_for_the_secret(on_terminal, at_service):
    (block,) = (block for block in blocks("dkimctl login") if "--secret-stdin" not in block)
    words = [re.sub(r'"\$(\w+)"', lambda m: at_service[m[1]], word) for word in block.split()[1:]]
    answers = [("Client secret", at_service["CLIENT_SECRET"])]
    status, shown = on_terminal([*words, "--credential-store", "file"], answers)
    assert status == 0, shown


def test_ci_with_the_environment_alone(cli, shell, at_service):
    cli.write("domains.yaml", SPECS.replace("example.", "ci.example."))
    (block,) = blocks("DKIMCTL_CLIENT_SECRET=")
    shell(block, at_service)
    assert json.loads((cli.home / "result.json").read_text())["count"] == 2
    assert not list(cli.home.rglob("credentials.json"))


WAIT = (
    "\nfor n in $(seq 100); do (echo > /dev/tcp/127.0.0.1/$PORT) 2>/dev/null && break; "
    "sleep 0.1; done\n"
)
STOP = "\nkill $(jobs -p)\nwait || true"


@pytest.fixture
def port():
    """One on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def test_the_services_own_side(cli, shell, port):
    (serve,) = (block for block in blocks("dkimctl serve") if "--faults" not in block)
    done = shell(serve.replace(" &\n", f" &{WAIT}", 1) + STOP, {"PORT": port}, timeout=60)
    client = json.loads((cli.home / "client.json").read_text())
    assert f"{client['client_id']}\tactive" in done.stdout
    operate = next(block for block in blocks("dkimctl service") if "disable" in block)
    shell(operate, {"CLIENT_ID": client["client_id"]})
    assert "deleted" in cli("service", "client", "list", "--data", "service.db").out


def test_failures_can_be_rehearsed(cli, shell, port):
    (faults,) = (text for text in YAML if "drop-after" in text)
    cli.write("faults.yaml", faults)
    (serve,) = blocks("--faults")
    done = shell(serve + WAIT + STOP, {"PORT": port}, timeout=60)
    assert "faults with seed 7: drop-after 10%, 429 10%, 503-before 5%" in done.stderr


def test_the_benchmarks_run(cli, shell, needs_tool):
    for tool in ("named-checkzone", "nsd", "dig"):
        needs_tool(tool)
    (block,) = blocks("tests/bench")
    short = block.replace("tests/bench", str(ROOT / "tests/bench"))
    short = short.replace("startup.py", "startup.py 1").replace("load.py", "load.py 10")
    short = short.replace("register.py", "register.py 100 1")
    short = short.replace("show_dns.py", "show_dns.py 10 1")
    short = short.replace("check_dns.py", "check_dns.py 10 1")
    done = shell(short, {})
    assert "register --dry-run" in done.stdout
    assert "peer: yaml.load" in done.stdout
    assert "of the bare loop" in done.stdout
    assert "once: octoDNS" in done.stdout
    assert "once: checkdmarc" in done.stdout


def test_completion(shell, cli):
    (block,) = blocks("dkimctl completion")
    shell(block, {})
    assert "_dkimctl_completion" in (cli.home / "dkimctl.bash").read_text()


def test_the_tables_of_outcomes_and_formats_are_those_of_the_tool():
    from dkimctl.models.registration import Outcome
    from dkimctl.render.renderer import Format

    for word in (*Outcome, *Format):
        assert f"| `{word}` |" in README


def test_the_readme_shows_every_library_of_the_project():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["service"]]
    table = README.partition("## Libraries")[2].lower()
    for requirement in needed:
        assert re.match(r"[a-z]+", requirement)[0] in table
