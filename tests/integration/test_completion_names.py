"""Names of profiles, domains and clients, asked for as the shells' scripts do."""

from __future__ import annotations

import sqlite3

import pytest

from dkimctl.cli.completion.names import ASKED, MOST_DOMAINS

CONFIG = """\
profiles:
  test: {auth_url: https://auth.example, base_url: https://example.com, client_id: client-of-test}
"""
SPECS = """\
- {sign_domain: example.com, selector: s, key_len: 2048}
- {sign_domain: mail.example.net, selector: s, key_len: 2048}
"""
BOTH = ["example.com", "mail.example.net"]
PROFILES = ["default", "sandbox\tthe embedded service", "test\tclient ID client-of-test"]


@pytest.fixture
def ask(cli):
    """The names of a kind; keywords are what is on the line."""

    def ask(kind: str, environment: dict[str, str] | None = None, **line: str) -> list[str]:
        asked = {f"{ASKED}_{name.upper()}": value for name, value in line.items()}
        done = cli(env={ASKED: kind} | asked | (environment or {}))
        assert (done.status, done.err) == (0, "")
        return done.out.splitlines()

    return ask


@pytest.fixture
def registered(cli) -> None:
    """A sandbox with two domains, and a config with the profile `test`."""
    cli.write("one.yaml", SPECS)
    assert cli("register", "--sandbox", "one.yaml").status == 0
    cli.write("config.yaml", CONFIG)
    cli.environment["DKIMCTL_CONFIG"] = str(cli.home / "config.yaml")


@pytest.fixture
def add_domains(cli, registered):
    """Add domains to the sandbox's ledger, whatever their names."""

    def add(*names: str) -> None:
        with sqlite3.connect(next(cli.home.rglob("ledger.db"))) as ledger:
            ledger.executemany(
                "INSERT INTO registration (account_id, sign_domain, selector) VALUES (1, ?, 's')",
                ((name,) for name in names),
            )
        ledger.close()

    return add


@pytest.mark.usefixtures("registered")
def test_profiles_have_their_client_ids(ask, cli):
    assert ask("profiles") == PROFILES
    del cli.environment["DKIMCTL_CONFIG"]
    for config in ("config.yaml", "~/config.yaml", str(cli.home / "config.yaml")):
        assert ask("profiles", config=config) == PROFILES
    assert ask("profiles") == PROFILES[:2]


@pytest.mark.usefixtures("registered")
def test_domains_are_those_of_the_profile_on_the_line(ask):
    assert ask("domains", sandbox="1") == ask("domains", profile="sandbox") == BOTH
    assert ask("domains", sandbox="1", start="e") == ["example.com"]
    assert ask("domains", sandbox="1", start="E") == ["example.com"]
    assert ask("domains", {"DKIMCTL_PROFILE": "sandbox"}) == BOTH
    assert ask("domains") == ask("domains", profile="test") == []
    assert ask("domains", profile="unknown") == ask("domains", profile="a\nb") == []
    theirs = {"base_url": "https://sandbox.invalid", "client_id": "sandbox"}
    assert ask("domains", profile="test", **theirs) == BOTH


def test_client_ids_are_those_of_the_data_file_on_the_line(ask, cli):
    for name in ("one", "two", "$(id)", "gone"):
        cli("service", "client", "create", name, "--data", "my service.db")
    cli("service", "client", "delete", "gone", "--data", "my service.db")
    cli("service", "client", "disable", "two", "--data", "my service.db")
    for data in ("my service.db", "~/my service.db"):
        assert ask("clients", data=data) == ["one\tactive", "two\tdisabled"]
    assert ask("clients") == [], "there is no data file"
    assert ask("clients", data="postgresql://db.example/dkimctl") == []
    assert {path.name for path in cli.home.iterdir()} == {"my service.db"}


def test_of_many_domains_some_are_offered_that_have_in_common_what_all_have(ask, add_domains):
    add_domains(*(f"mx{number:05}.example.org" for number in range(10_000)))
    offered = ask("domains", sandbox="1", start="m")
    assert (len(offered), offered[0]) == (MOST_DOMAINS, "mail.example.net")
    assert offered[-1] == "mx09999.example.org"
    assert ask("domains", sandbox="1", start="mx0777") == [
        f"mx0777{digit}.example.org" for digit in range(10)
    ]


def test_names_that_a_shell_could_act_on_are_not_offered(ask, add_domains):
    add_domains("$(touch x).example", "`id`.example", "a b.example", "é.example", "-x.example")
    add_domains("a\n.example", "a\x1b[31m.example", "*.example", "~.example", "'.example")
    assert ask("domains", sandbox="1") == BOTH


@pytest.mark.usefixtures("registered")
def test_what_is_damaged_gives_no_names_and_no_message(ask, cli):
    ledger = next(cli.home.rglob("ledger.db"))
    for content in (b"", b"no database", ledger.read_bytes()[:5000]):
        ledger.write_bytes(content)
        before = {path: path.stat().st_mtime_ns for path in cli.home.rglob("*")}
        assert ask("domains", sandbox="1") == []
        assert ask("domains", {"DKIMCTL_DEBUG": "1"}, sandbox="1") == []
        assert {path: path.stat().st_mtime_ns for path in cli.home.rglob("*")} == before
    for config in ("profiles: [", "profiles: {x: {wrong: 1}}", "\0"):
        cli.write("config.yaml", config)
        assert ask("profiles") == []
    assert ask("profiles", config="-") == []


def test_a_script_of_another_version_gets_nothing(ask):
    assert ask("bash", {"_DKIMCTL_COMPLETE_LINE": "dkimctl sta"}) == []
    assert ask("complete_bash", {"COMP_WORDS": "dkimctl sta", "COMP_CWORD": "1"}) == []
    assert ask("") == ask("tokens") == []


def test_nothing_is_created(ask, cli):
    assert (ask("domains", sandbox="1"), ask("clients")) == ([], [])
    assert ask("profiles") == PROFILES[:2]
    assert list(cli.home.iterdir()) == []


@pytest.mark.usefixtures("registered")
def test_neither_commands_nor_heavy_libraries_are_imported(ask, cli):
    del cli.environment["DKIMCTL_CONFIG"]
    cli.at_start("import atexit, sys\natexit.register(lambda: print(*sys.modules))\n")
    heavy = {"typer", "rich", "httpx", "keyring", "sqlalchemy", "cryptography", "msgspec", "yaml"}
    for kind in ("profiles", "domains", "clients"):
        imported = {name.partition(".")[0] for name in ask(kind, sandbox="1")[-1].split()}
        assert "dkimctl" in imported
        assert not heavy & imported, kind
