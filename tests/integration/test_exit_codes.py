"""Every documented exit code, with the real command line."""

from __future__ import annotations

import json
import os

import pytest

ENTRY = "- {sign_domain: example.com, selector: s1, key_len: 2048, enable: false}\n"
TWO = ENTRY + ENTRY.replace(".com", ".org")


def item(code: str, **fields) -> dict:
    return {"result": {"code": code, "message": "m"}, "sign_domain": "example.com",
            "selector": "s1", **fields}  # fmt: skip


def sound(key_records, code: str, **fields) -> dict:
    values = {"fqdn": "s1._domainkey.example.com", "type": "TXT", "value": key_records[2048]}
    return item(code, setting_values=values, **fields)


@pytest.fixture(autouse=True)
def no_backoff(cli):
    cli.skip_backoff()


@pytest.fixture
def register(cli, scripted_server, scripted_account, make_answer):
    """Register one entry at a service that answers with these items."""

    def register(*items, status=200, words=(), specs=ENTRY):
        scripted_server.registering = make_answer(status, {"items": list(items)})
        return cli("register", "-", "--format", "json", *words, stdin=specs, env=scripted_account)

    return register


@pytest.mark.interface("7.3", "200")
@pytest.mark.parametrize(
    ("code", "fields", "outcome", "status"),
    [
        ("201", {}, "created", 0),
        ("409", {"key_len": 2048, "enable": False}, "exists", 0),
        ("409", {"enable": True}, "differs", 1),
        ("201", {"key_len": 1024}, "unusable", 1),
        ("500", {}, "failed", 4),
        ("999", {}, "failed", 4),
    ],
)
def test_the_worst_outcome_gives_the_exit_code(
    register, key_records, code, fields, outcome, status
):
    done = register(sound(key_records, code, **fields))
    assert done.json["items"][0]["outcome"] == outcome
    assert done.status == status


@pytest.mark.parametrize(
    ("items", "outcome", "status"),
    [
        ([item("409")], "taken", 1),
        ([item("400")], "invalid", 1),
        ([], "unknown", 4),
        ([{"sign_domain": "example.com"}], "unknown", 4),
        ([item("201") | {"sign_domain": "example.org"}], "unknown", 4),
    ],
)
def test_the_exit_code_of_answers_without_a_record(register, items, outcome, status):
    done = register(*items)
    assert (done.json["items"][0]["outcome"], done.status) == (outcome, status)


def test_4_takes_precedence_over_1(register, key_records):
    failed = item("500") | {"sign_domain": "example.org"}
    assert register(item("409"), failed, specs=TWO).status == 4


def test_an_unknown_item_has_a_null_result_and_a_warning(register):
    done = register()
    assert done.json["items"] == [
        {"result": None, "sign_domain": "example.com", "selector": "s1", "key_len": 2048,
         "enable": False, "outcome": "unknown"}
    ]  # fmt: skip
    told = json.loads(done.err)
    assert told["errors"] == []
    assert told["warnings"][0]["code"] == "unknown"
    assert "run the same command again" in told["warnings"][0]["hint"]


@pytest.mark.interface("7.2", "401", "403")
@pytest.mark.parametrize("status", [401, 403])
def test_a_rejected_token_is_3_and_nothing_is_printed(register, status):
    done = register(status=status)
    assert (done.status, done.out) == (3, "")
    assert json.loads(done.err)["errors"][0]["code"] == "token_rejected"


def test_a_refused_batch_is_1(cli, scripted_server, scripted_account, make_answer):
    scripted_server.registering = make_answer(400, {"message": "too many"})
    done = cli("register", "-", stdin=ENTRY, env=scripted_account)
    assert (done.status, done.out) == (1, "")
    assert "too many" in done.err


def test_a_service_that_hangs_up_is_4(cli, scripted_server, scripted_account):
    scripted_server.registering = None
    done = cli("register", "-", stdin=ENTRY, env=scripted_account)
    assert (done.status, done.out) == (4, "")
    assert "example.com (selector s1): unknown" in done.err


def test_an_unusable_registration_stays_unusable(cli, register, scripted_account, key_records):
    done = register(sound(key_records, "201", key_len=1024))
    assert done.json["items"][0]["outcome"] == "unusable"
    again = register(sound(key_records, "201"))
    assert (again.status, again.json["items"][0]["outcome"]) == (1, "unusable")
    shown = cli("show-dns", env=scripted_account)
    assert (shown.status, shown.out) == (1, "")
    assert "2048 bits, not 1024" in shown.err


def test_an_unreadable_ca_file_is_a_usage_error(cli, scripted_account):
    environment = scripted_account | {"SSL_CERT_FILE": "/nowhere/ca.pem"}
    done = cli("register", "-", stdin=ENTRY, env=environment)
    assert done.status == 2
    assert "SSL_CERT_FILE" in done.err


def test_a_run_that_stops_early_shows_its_results_and_is_4(
    cli, scripted_server, scripted_account, make_answer, key_records
):
    refused = make_answer(429, headers={"Retry-After": "1"})
    answers = [make_answer(200, {"items": [sound(key_records, "201")]}), *[refused] * 4]
    tokens = scripted_server.answer
    scripted_server.answer = lambda request: (
        tokens(request) if request.path == "/oauth2/token" else answers.pop(0)
    )
    words = ("register", "-", "--batch-size", 1, "--format", "json", "--max-wait", "3s")
    done = cli(*words, stdin=TWO, env=scripted_account)
    assert [item["outcome"] for item in done.json["items"]] == ["created", "pending"]
    assert done.status == 4
    assert "kept throttling 1 domain" in json.loads(done.err)["errors"][0]["message"]
    scripted_server.answer = tokens
    scripted_server.registering = make_answer(
        200, {"items": [sound(key_records, "201") | {"sign_domain": "example.org"}]}
    )
    again = cli(*words, stdin=TWO, env=scripted_account)
    assert len(json.loads(scripted_server.requests[-1].body)["domains"]) == 1
    assert again.json["items"][0]["outcome"] == "exists"


@pytest.mark.parametrize(
    "words",
    [
        ["register"],
        ["register", "absent.yaml"],
        ["register", "--no-such-option", "x"],
        ["regster"],
        ["show-dns", "--format", "xml"],
        ["show-dns", "--profile", "nobody"],
        ["show-dns", "--sandbox", "--timeout", "soon"],
        ["show-dns", "--auth-url", "http://example.com"],
        ["show-dns", "--auth-url", f"https://{'a' * 64}.example"],
        ["register", "--dry-run", "--format", "zone", "--sandbox", "-"],
        ["register", "--format", "octodns", "--sandbox", "-"],
        ["register", "--format", "zone", "--wide", "--sandbox", "-"],
        ["api", "GET", "/x", "--input", "absent.json"],
        ["login", "--sandbox"],
        ["logout", "--sandbox"],
        ["service", "client", "create", "a:b", "--data", "x.db"],
        ["serve", "--port", "99999"],
        ["completion", "csh"],
    ],
    ids=" ".join,
)
def test_usage_errors_are_2_and_have_a_hint(cli, words):
    done = cli(*words, stdin="[]")
    assert (done.status, done.out) == (2, "")
    first, second = done.err.splitlines()
    assert first.startswith("dkimctl: error: ")
    assert second.startswith("hint: ")


def test_usage_errors_are_json_with_format_json(cli):
    for words in (["register", "--format", "json"], ["show-dns", "--format=json", "--nope"]):
        done = cli(*words)
        assert (done.status, done.out) == (2, "")
        (error,) = json.loads(done.err)["errors"]
        assert set(error) == {"code", "message", "hint"}
        assert all(error.values())
        assert error["code"] == "usage"


def test_an_unknown_client_of_the_service_is_1(cli):
    assert cli("service", "client", "create", "--data", "service.db").status == 0
    for verb in ("disable", "enable", "delete", "rotate-secret"):
        done = cli("service", "client", verb, "nobody", "--data", "service.db")
        assert done.status == 1
        assert "the client does not exist" in done.err


def test_ctrl_c_while_a_library_executes_text_is_130(cli):
    cli.environment["PYTHONPATH"] = str(cli.home)
    (cli.home / "yaml.py").write_text('exec("raise KeyboardInterrupt")\n')
    done = cli("register", "--dry-run", "-", stdin=ENTRY)
    assert (done.status, done.out) == (130, "")
    assert "interrupted" in done.err


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("MemoryError", "not enough memory"),
        ("OSError(errno.EMFILE, 'x')", "too many open files"),
        ("OSError(errno.ENFILE, 'x')", "too many open files"),
    ],
)
def test_what_the_system_lacks_is_no_defect(cli, error, message):
    cli.environment["PYTHONPATH"] = str(cli.home)
    (cli.home / "yaml.py").write_text(f"import errno\nraise {error}\n")
    done = cli("register", "--dry-run", "-", stdin=ENTRY)
    assert (done.status, done.out) == (4, "")
    assert done.err.startswith(f"dkimctl: error: {message}\nhint: ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_fifo_that_nothing_reads_is_an_error(cli):
    os.mkfifo(cli.home / "pipe")
    done = cli("register", "--sandbox", "--output", "pipe", "-", stdin=ENTRY)
    assert done.status == 4
    assert "cannot write pipe: nothing reads from it" in done.err
