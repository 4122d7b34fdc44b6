"""What newcomers type: each mistake is answered with what is wrong, and what to type instead."""

from __future__ import annotations

import re

import pytest

import hostile
from ports import free_port

SECRET = "a-secret-nobody-else-is-to-see"
TOKEN = hostile.whole(b'{"access_token": "a-token"}')


@pytest.fixture
def told(cli):
    """Run a command that fails with one error, and give its message and hint."""
    cli.skip_backoff()

    def told(*words, status=2, **options):
        done = cli(*words, **options)
        assert done.status == status, done.err
        assert SECRET not in done.err
        error, hint = (line for line in done.err.splitlines() if not line.startswith("dkimctl: w"))
        return error.removeprefix("dkimctl: error: "), hint.removeprefix("hint: ")

    return told


def account_of(auth_url, base_url=None):
    return {
        "DKIMCTL_AUTH_URL": auth_url,
        "DKIMCTL_BASE_URL": base_url or auth_url,
        "DKIMCTL_CLIENT_ID": "id",
        "DKIMCTL_CLIENT_SECRET": SECRET,
    }


def test_a_domain_in_place_of_a_file(told):
    error, hint = told("register", "--sandbox", "example.com")
    assert error == "no such file: example.com"
    assert hint == "for the domain itself: `dkimctl register --sandbox --domain example.com`"


def test_a_file_with_a_similar_name_is_suggested(told, cli):
    cli.write("domains.yaml", "- example.com\n")
    cli.write("zones.yaml", "- example.com\n")
    for name in ("domains.yml", "domian.yaml", "Domains.yaml", "domain"):
        error, hint = told("register", "--sandbox", name)
        assert (error, hint) == (f"no such file: {name}", "did you mean domains.yaml?")
    assert told("check-dns", "--sandbox", "domains.yml")[1] == "did you mean domains.yaml?"
    assert told("register", "--sandbox", "missing.yaml")[1] == "check the path"


def test_directories_urls_and_patterns_are_no_files(told, cli):
    (cli.home / "specs").mkdir()
    cli.write("specs/b.yaml", "[]")
    assert "such as specs/b.yaml" in told("register", "--sandbox", "specs")[1].replace("\\", "/")
    error, hint = told("register", "--sandbox", f"https://me:{SECRET}@example.com/x.yaml")
    assert (error, "download it first" in hint) == ("a URL is not a file", True)
    assert "without quotes" in told("register", "--sandbox", "~/domains.yaml")[1]
    assert "no file matches" in told("register", "--sandbox", "*.yaml")[1]
    assert told("register", "--sandbox", "")[0] == "the file name is empty"


@pytest.mark.parametrize(
    ("word", "error", "hint"),
    [
        (f"https://me:{SECRET}@example.com/x", '"https://example.com" is a URL', ": example.com"),
        ("user@example.com", '"user@example.com" is an email address', "after the @"),
        ("s1._domainkey.example.com", "is the name of a key record", ": example.com"),
        ("example.com,example.net", "is not one domain name", "without spaces or commas"),
    ],
)
def test_other_things_than_domains(told, word, error, hint):
    message, advice = told("show-dns", "--sandbox", word)
    assert message.endswith(error)
    assert advice.endswith(hint)


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (("--domain", "domains.yaml"), "is the name of a file", "domains.yaml without --domain"),
        (
            ("--domain", "a.test", "--start-date", "2027-02-30"),
            "not a date and time that exists",
            "correct",
        ),
        (("--domain", "a.test", "--start-date", "2027-02-01"), "a date and time to", "2027-02-01T"),
        (("--domain", "a.test", "--selector", "s", "--assign-selector", "t"), "combined", "remove"),
        (("--domain", "a.test", "-n", "--refresh"), "no effect with --dry-run", "asks the service"),
        (("mail",), "is a mail, not a spec file", "dkimctl verify"),
        (("config",), "is a config file, not a spec file", "--config"),
    ],
)
def test_what_register_cannot_take(told, cli, words, error, hint):
    cli.write("mail", "From: a@example.com\nSubject: hello\n\nHi\n")
    cli.write("config", "dns:\n  - provider: rfc2136\n")
    message, advice = told("register", "--sandbox", *words)
    assert error in message
    assert hint in advice


def test_a_table_says_what_to_do_about_an_entry_that_differs(cli):
    words = ("register", "--sandbox", "--domain", "a.test", "--format", "table")
    assert cli(*words).status == 0
    done = cli(*words, "--key-len", "1024")
    assert done.status == 1
    assert "dkimctl: differs: correct the entry, or register another selector" in done.err


def test_names_of_files_that_a_shell_made_of_a_glob(told, cli):
    cli.write("notes", "")
    cli.write("mail.example", "")
    assert "put globs in quotes" in told("show-dns", "--sandbox", "notes")[1]
    assert "as in ./list" in told("show-dns", "--sandbox", "mail.example", status=1)[1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("- example.com\n", "it is a spec file (YAML)"),
        ("hello\n", "it is not JSON"),
        ('{"items": [{"sign_domain": "a.test"}, {"sign_domain": "b.test"}]}', "none of its items"),
        ("a,sign_domain\nb,example.com\n", "it is a table (CSV)"),
        ("{}", "missing required field `items`"),
    ],
)
def test_what_is_not_a_saved_result(told, text, reason):
    for command in (
        ["ledger", "import", "--sandbox", "-"],
        ["show-dns", "--sandbox", "--from", "-"],
    ):
        error, advice = told(*command, stdin=text)
        assert error.startswith("<stdin> is not a saved result: ")
        assert reason in error
        assert "written by --format json" in advice


def test_https_to_the_embedded_service(told, account):
    here = account["DKIMCTL_AUTH_URL"]
    there = here.replace("http:", "https:")
    wrong = account | {"DKIMCTL_AUTH_URL": there}
    error, hint = told("token", "--timeout", "1s", env=wrong, status=4)
    assert error == f"the server at {there} does not use TLS"
    assert hint == f"for this machine, write {here} in DKIMCTL_AUTH_URL"
    wrong = account | {"DKIMCTL_BASE_URL": there}
    error, hint = told("api", "GET", "/x", "--timeout", "1s", env=wrong, status=4)
    assert f"write {here} in DKIMCTL_BASE_URL" in hint


def test_http_to_a_server_with_tls(told, serve):
    body = b"<html>The plain HTTP request was sent to HTTPS port</html>"
    server = serve(lambda request: [hostile.whole(body, "400 Bad Request")])
    error, hint = told("token", env=account_of(server.url), status=4)
    assert error == f"the server at {server.url} uses TLS"
    assert hint == "write https:// in DKIMCTL_AUTH_URL"


@pytest.mark.parametrize(
    ("host", "days", "is_known", "what", "advice"),
    [("127.0.0.1", 30, False, "self.signed certificate", "if you trust it, name .* --ca-bundle"),
     ("127.0.0.1", -1, True, "certificate has expired", "ask the server's operator to renew it"),
     ("other.example", 30, True, "IP address mismatch, certificate is not valid for '127.0.0.1'",
      "check the host name in DKIMCTL_AUTH_URL")],
)  # fmt: skip
def test_what_is_wrong_with_a_certificate(
    told, serve, tmp_path, host, days, is_known, what, advice
):
    """Nothing is sent to such a server."""
    bundle, tls = hostile.make_certificate(tmp_path, host, days=days)
    server = serve(lambda request: [TOKEN], tls)
    more = ["--ca-bundle", bundle] if is_known else []
    error, hint = told("token", *more, env=account_of(server.url), status=4)
    assert re.fullmatch(f"cannot trust {re.escape(server.url)}: {what}\\.?", error)
    assert re.match(advice, hint)
    assert server.requests == []


def test_where_nothing_listens(told):
    url = f"http://127.0.0.1:{free_port()}"
    error, hint = told("token", env=account_of(url), status=4)
    assert error == f"cannot reach {url}: the connection was refused"
    assert "check host and port of DKIMCTL_AUTH_URL" in hint


def test_a_404_names_its_url(told, serve, cli):
    cli.write("domains.yaml", "- {sign_domain: example.com, selector: s1, key_len: 2048}\n")
    server = serve(
        lambda request: [TOKEN if b" /auth/" in request else hostile.whole(b"", "404 Not Found")]
    )
    good = account_of(f"{server.url}/auth", server.url)
    error, hint = told("token", env=account_of(server.url), status=4)
    assert error == f"{server.url}/oauth2/token answered 404"
    assert hint == "check DKIMCTL_AUTH_URL, to which /oauth2/token is added"
    error, _ = told("api", "GET", f"/send/1?key={SECRET}", env=good, status=1)
    assert error == f"{server.url}/send/1 answered 404"
    done = cli("register", "domains.yaml", env=good)
    assert done.status == 4
    assert f"error: {server.url}/domain/dkim answered 404\nhint: check DKIMCTL_BASE_URL" in done.err


def test_a_value_is_named_where_it_was_set(told, cli):
    closed = f"127.0.0.1:{free_port()}"
    profiles = f"here: {{auth_url: 'http://{closed}'}}, there: {{proxy: 'http://{closed}'}}"
    profiles += ", sandbox: {defaults: {key_len: 1024, enable: true}}"
    cli.write("config.yaml", f"profiles: {{{profiles}}}\nnotify: {{command: [/nowhere]}}")
    account = account_of("https://service.example")
    del account["DKIMCTL_AUTH_URL"]
    config = ("--config", "config.yaml")
    assert told("token", *config, "-p", "here", env=account, status=4)[1] == (
        "nothing listens there: check host and port of auth_url in config.yaml"
    )
    account["DKIMCTL_AUTH_URL"] = "https://service.example"
    reached = f"cannot reach https://service.example through the proxy http://{closed}"
    error, _ = told("token", *config, "-p", "there", env=account, status=4)
    assert error == f"{reached} (config file config.yaml): the connection was refused"
    exported = account | {"HTTPS_PROXY": f"http://me:{SECRET}@{closed}"}
    error, hint = told("token", env=exported, status=4)
    assert error == (
        f"{reached.replace('//127', '//***@127')} (environment variable HTTPS_PROXY): "
        "the connection was refused"
    )
    assert hint.startswith("check the address of the proxy")
    done = cli("register", "--sandbox", *config, "--dry-run", "-", stdin="- example.com")
    where = "`defaults` of the profile sandbox in the config file config.yaml\n"
    assert done.err.count(f"does not say so, key_len is from {where}") == 1
    assert "enable is from" not in done.err
    done = cli("check-dns", "--sandbox", *config, "--test-notice")
    assert "in the config file config.yaml\n" in done.err


def test_a_domain_that_is_nearly_that_of_a_key_is_suggested(told, cli):
    assert cli("register", "--sandbox", "--domain", "example.com").status == 0
    for command in ("show-dns", "check-dns", "rotate", "ledger forget"):
        words = (*command.split(), "--sandbox", "exmaple.com")
        assert told(*words, status=1)[1] == "did you mean example.com?"
    done = cli("list", "--sandbox", "example.com", "exampl.com")
    assert "exampl.com is not registered: did you mean example.com?\n" in done.err


def test_what_there_is_no_command_for(told):
    assert told("regsiter")[0] == "no such command: regsiter"
    for word in ("unregister", "delete", "remove", "revoke"):
        assert "no call to unregister" in told(word, "example.com")[1]
    assert told("list")[0].startswith("not logged in: the profile default has no account yet")
    assert told("overview", "--sandbox", "--html")[1] == "write --html FILE"
