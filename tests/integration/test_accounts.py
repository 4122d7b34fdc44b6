"""Equivalent URLs are one account, also in what older versions have left behind."""

from __future__ import annotations

import json
import uuid

import pytest

from dkimctl.ledger.ledger import Ledger
from old_ledgers import make_version_4

SPECS = "- a.NAME.example\n- {sign_domain: b.NAME.example, selector: s1, key_len: 2048}\n"


@pytest.fixture
def specs(cli):
    """A spec file with two domains that no other test has at the shared service."""
    return cli.write("domains.yaml", SPECS.replace("NAME", f"d{uuid.uuid4().hex[:12]}"))


@pytest.fixture
def spellings(account):
    """URLs of the service that are equivalent."""
    url = account["DKIMCTL_BASE_URL"]
    scheme, port = url.rsplit(":", 1)
    return [url, f"{scheme}:00{port}", f"{url}/.", f"{url}/x/%2e%2E/", url.replace("http", "HTTP")]


@pytest.fixture
def under(cli, account):
    """Run a command under a spelling of the service's URL, with a state directory."""

    def under(url, *words, state="state"):
        urls = {"DKIMCTL_BASE_URL": url, "DKIMCTL_AUTH_URL": url}
        return cli(*words, env=account | urls | {"DKIMCTL_STATE_DIR": str(cli.home / state)})

    return under


def test_under_all_spellings_every_domain_is_registered_once(under, specs, spellings):
    seen = []
    for url in spellings:
        done = under(url, "register", specs, "--format", "json")
        assert done.status == 0, done.err
        seen.append([(item["selector"], item["outcome"]) for item in done.json["items"]])
    assert {outcome for _, outcome in seen[0]} == {"created"}
    again = [(selector, "exists") for selector, _ in seen[0]]
    assert seen[1:] == [again] * (len(spellings) - 1)


def test_an_old_ledger_is_shown_whole_and_nothing_in_it_registered_again(
    cli, under, specs, spellings, account
):
    """As the version before left it, which registered each domain once for each spelling."""
    client_id = account["DKIMCTL_CLIENT_ID"]
    ledger = cli.home / "state" / "ledger.db"
    for number, url in enumerate(spellings):
        done = under(spellings[0], "register", specs, state=f"state-{number}")
        assert done.status == 0, done.err
        made = cli.home / f"state-{number}" / "ledger.db"
        with Ledger.open_existing(made, base_url=spellings[0], client_id=client_id) as one:
            registrations = list(one.all())
        with Ledger.open(ledger, base_url=url, client_id=client_id) as old:
            old.record(registrations)
    make_version_4(ledger)
    before = ledger.read_bytes()
    shown = {
        tuple((item["sign_domain"], item["selector"]) for item in under(
            url, "show-dns", "--format", "json").json["items"])
        for url in spellings
    }  # fmt: skip
    (keys,) = shown
    assert ledger.read_bytes() == before
    assert len(set(keys)) == len(keys) == len(spellings) + 1  # the second has one selector
    for url in spellings:
        done = under(url, "register", specs, "--format", "json")
        assert done.status == 0, done.err
        assert {item["outcome"] for item in done.json["items"]} == {"exists"}
    after = under(spellings[-1], "show-dns", "--format", "json").json["items"]
    assert tuple((item["sign_domain"], item["selector"]) for item in after) == keys


WORDS = (
    ("register", "domains.yaml", "--dry-run"), ("show-dns",), ("check-dns",), ("rotate",),
    ("ledger", "forget", "a.example", "--force"),
)  # fmt: skip


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_what_is_registered_under_another_name_of_this_machine_is_named_once(
    cli, under, specs, account, words
):
    url = account["DKIMCTL_BASE_URL"]
    localhost = url.replace("127.0.0.1", "localhost")
    assert under(localhost, *words).err.count("another account") == 0
    done = under(url, "register", specs)
    assert (done.status, done.err.count("another account")) == (0, 0)
    done = under(localhost, *words)
    warning = f"warning: the ledger has 2 domains of {url}, and none of {localhost}, which is "
    assert done.err.count(warning) == done.err.count("another account") == 1, done.err
    assert f"hint: if you mean that one, use --base-url {url}\n" in done.err
    assert under(localhost, *words, "--base-url", url).err.count("another account") == 0
    assert under(localhost, *words, "--client-id", "you").err.count("another account") == 0
    # Nor once it has domains of its own.
    assert under(localhost, "register", specs).err.count("another account") == 1
    assert under(localhost, *words).err.count("another account") == 0


@pytest.fixture
def old_login(cli, login, account):
    """Log in, with the URLs written as an older version kept them; gives both files."""
    assert login(account).status == 0
    directory = cli.home / ".local/state/dkimctl"
    files = [directory / name for name in ("logins.json", "credentials.json")]
    url = account["DKIMCTL_BASE_URL"]
    for file in files:
        file.write_text(file.read_text().replace(url, _respelled(url)))
    return files


def _respelled(url):
    scheme, port = url.rsplit(":", 1)
    return f"{scheme}:0{port}"


def names_in(file):
    """The entries of a credential file, as [kind, authorization URL, service URL, client ID]."""
    return [json.loads(name) for name in json.loads(file.read_text())]


def test_a_login_of_an_older_version_works_until_the_next(cli, specs, account, login, old_login):
    url, credentials = account["DKIMCTL_BASE_URL"], old_login[1]
    status = cli("status", "--format", "json").json
    assert (status["base_url"], status["problem"]) == (url, None)
    assert str(credentials) in status["secret_source"]
    assert cli("register", specs).status == 0
    assert {name[2] for name in names_in(credentials)} == {_respelled(url)}
    assert login(account).status == 0
    assert {name[2] for name in names_in(credentials)} == {url}
    assert cli("logout").status == 0
    assert names_in(credentials) == []


def test_logout_deletes_the_secret_of_an_older_version(cli, old_login):
    assert len(names_in(old_login[1])) == 2
    assert cli("logout").status == 0
    assert names_in(old_login[1]) == []
    assert cli("status").status == 3
