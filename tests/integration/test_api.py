"""`api`: any request with the token, to the profile's service only."""

from __future__ import annotations

import subprocess

import pytest

from dkimctl.client.http import MAX_BODY

BODY = b'\x00\xff\x1b[31m{"items": [{"delivery_id": "1"}]}\r\n'


@pytest.fixture
def answering(scripted_server, scripted_account, make_answer):
    """Set the status and body of the service's response; returns the environment for it."""

    def answering(status, body=b"", **headers):
        scripted_server.registering = make_answer(status, body, headers)
        return scripted_account

    return answering


def last(server):
    return server.requests[-1]


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [(200, 0), (201, 0), (204, 0), (302, 4), (400, 1), (401, 3), (403, 3), (404, 1), (409, 1),
     (429, 1), (500, 4), (503, 4)],
)  # fmt: skip
def test_the_exit_code_follows_the_status_class(cli, answering, status, exit_code):
    body = b"" if status == 204 else b'{"message": "x"}'
    env = answering(status, body, Location="https://evil.example/")
    done = cli("api", "GET", "/x?key=hunter2", env=env)
    assert "hunter2" not in done.err
    assert done.status == exit_code
    assert done.out == body.decode()
    assert (str(status) in done.err) is (exit_code != 0)
    assert ("hint: redirects are not followed" in done.err) is (status == 302)


def test_the_body_is_printed_unchanged(cli, answering):
    environment = cli.environment | answering(200, BODY)
    done = subprocess.run(cli.command("api", "GET", "/x"), env=environment, capture_output=True)
    assert (done.returncode, done.stdout) == (0, BODY)


def test_on_a_terminal_the_body_is_escaped(cli, answering, on_terminal):
    cli.environment |= answering(200, BODY)
    status, shown = on_terminal(["api", "GET", "/x"])
    assert status == 0
    assert shown.splitlines() == [r'\x00\xff\x1b[31m{"items": [{"delivery_id": "1"}]}']


@pytest.mark.parametrize("path", ["/send/1", "/x?a=http://b", "/@evil.example", "/%00"])
def test_a_path_is_sent_unchanged(cli, answering, scripted_server, path):
    assert cli("api", "GET", path, env=answering(200)).status == 0
    assert last(scripted_server).path == path
    assert last(scripted_server).headers["authorization"].startswith("Bearer ")


def test_cookies_of_the_token_endpoint_are_not_sent(cli, answering, scripted_server, make_answer):
    environment, answer = answering(200), scripted_server.answer

    def with_cookie(request):
        given = answer(request)
        return make_answer(given.status, given.body, {"Set-Cookie": "a=b; Path=/"})

    scripted_server.answer = with_cookie
    assert cli("api", "GET", "/x", env=environment).status == 0
    assert "cookie" not in last(scripted_server).headers


def test_a_url_of_the_service_is_accepted(cli, answering, scripted_server):
    assert cli("api", "GET", f"{scripted_server.url}/x?y", env=answering(200)).status == 0
    assert last(scripted_server).path == "/x?y"


@pytest.mark.parametrize(
    "path",
    ["https://evil.example/x", "//evil.example/x", "{url}@evil.example/x", "{url}.evil.example/",
     "{url}", "{url}//x", "x", "", "/a b", "/a\nb", "/a#b", "/ä", "file:///etc/passwd",
     "/../x", "/a/%2e%2E/x", "/./x"],
)  # fmt: skip
def test_the_token_goes_to_no_other_host_and_no_odd_path(cli, answering, scripted_server, path):
    done = cli("api", "GET", path.format(url=scripted_server.url), env=answering(200))
    assert done.status == 2
    assert "hint:" in done.err
    assert scripted_server.requests == []


@pytest.mark.parametrize("method", ["", "GE T", "GET\r\nX: y", "GÉT", "1"])
def test_an_invalid_method_is_refused(cli, answering, scripted_server, method):
    assert cli("api", method, "/x", env=answering(200)).status == 2
    assert scripted_server.requests == []


def test_request_and_response_bodies_are_limited(cli, answering, scripted_server):
    (cli.home / "empty").touch()
    assert cli("api", "POST", "/x", "--input", "empty", env=answering(200)).status == 0
    assert last(scripted_server).body == b""
    assert last(scripted_server).headers["content-type"] == "application/json"
    done = cli("api", "GET", "/x", env=answering(200, b"x" * (MAX_BODY + 1)))
    assert (done.status, done.out) == (4, "")
    assert "16 MiB" in done.err
    done = cli("api", "POST", "/x", "--input", "absent", env=answering(200))
    assert done.status == 2
