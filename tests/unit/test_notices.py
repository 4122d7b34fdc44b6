"""The problems that checks show."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import hostile
from dkimctl.client.http import HttpClient
from dkimctl.dns.verdicts import Urgency
from dkimctl.errors import ServiceError
from dkimctl.models import Alarm, key_of
from dkimctl.notices import (
    MAX_ITEMS,
    MAX_SUBJECTS,
    OUR_SECRETS,
    KeyProblem,
    Look,
    Notice,
    after_second_look,
    find_changes,
    first_seen_now,
    notice_document,
    post_notice,
    run_notice_program,
)

DAY = timedelta(days=1)
NOON = datetime(2027, 1, 5, 12, tzinfo=UTC)
MISSING = KeyProblem("example.com s1", "missing")
OTHER = KeyProblem("example.org s1", "missing")
NO_ANSWER = KeyProblem("example.com s1", "no answer", is_unknown=True)
TOLD = Alarm(*MISSING[:2], first_seen=NOON - DAY, looked_at=NOON - DAY, told_at=NOON - DAY)
UNTOLD = TOLD._replace(told_at=None)


def look(*problems: KeyProblem, covers: bool = True) -> Look:
    return Look(problems, lambda subject: covers)


def test_a_problem_without_an_alarm_needs_a_second_look():
    assert first_seen_now(look(MISSING, OTHER), [TOLD]) == {OTHER.subject}
    assert first_seen_now(look(MISSING), [UNTOLD]) == set()  # it had its second look


@pytest.mark.parametrize(
    ("first", "second", "remain"),
    [
        (look(MISSING, OTHER), look(), [OTHER]),
        (look(MISSING), look(NO_ANSWER), [NO_ANSWER]),
        (look(MISSING), look(covers=False), [MISSING]),  # it could not be looked at
    ],
)
def test_what_remains_after_a_second_look(first, second, remain):
    assert [*after_second_look(first, second, {MISSING.subject}).problems] == remain


def test_what_is_new_what_is_over_and_what_nobody_needs_to_know():
    silent = Alarm(*NO_ANSWER[:2], NOON - DAY, NOON - DAY, NOON - DAY)
    for problems, alarms, new, over, stale in (
        ([MISSING], [UNTOLD], [MISSING], [], []),
        ([OTHER], [TOLD], [OTHER], [TOLD], []),
        ([], [UNTOLD], [], [], [UNTOLD]),
        ([NO_ANSWER], [TOLD, silent], [], [], []),  # without an answer nothing is over
        ([MISSING], [TOLD, silent], [], [silent], []),
    ):
        notice = find_changes(look(*problems), alarms, NOON)
        assert [problem for problem, _ in notice.new] == new
        assert (notice.over, notice.stale) == (over, stale)
    [(_, alarm)] = find_changes(look(MISSING), [UNTOLD], NOON).new
    assert alarm == UNTOLD._replace(looked_at=NOON), "with its first date"


SIGNING = KeyProblem("c.example s1", "signing now without DNS: missing", Urgency.SIGNING)
CALM = KeyProblem("a.example s1", "differs")


def alarm(problem: KeyProblem) -> Alarm:
    return Alarm(*problem[:2], NOON, NOON, NOON)


def pairs(*problems: KeyProblem) -> list[tuple[KeyProblem, Alarm]]:
    return [(problem, alarm(problem)) for problem in problems]


def read(notice: Notice, owners: Mapping[str, str] = {}) -> dict:
    owner_of = lambda domain: owners.get(domain, "")  # noqa: E731
    return json.loads(notice_document(notice, profile="default", now=NOON, owner_of=owner_of))


def test_problems_of_two_owners_are_two_items():
    three = [unanswered(number) for number in range(3)]
    run = CALM._replace(subject="rotation of d1.example")
    notice = Notice(new=pairs(*three), over=[alarm(three[1])], still=pairs(run))
    document = read(notice, {"d1.example": "mail\u202e"})
    assert [(item["count"], item["owner"]) for item in document["new"]] == [
        (2, None), (1, "mail\\u202e")
    ]  # fmt: skip
    assert document["over"][0]["owner"] == document["still"][0]["owner"] == "mail\\u202e"


def test_a_long_list_is_cut_and_counted():
    many = [
        CALM._replace(subject=f"{number:05}.example s1", detail=f"why {number % 1000}")
        for number in range(100_000)
    ]
    document = read(Notice(new=pairs(*many, SIGNING)))
    assert document["counts"]["new"] == 100_001
    assert len(document["new"]) == MAX_ITEMS
    assert document["new"][0]["subject"] == "c.example s1"
    assert document["new"][1]["count"] == 100
    assert sum(len(item["subjects"]) for item in document["new"]) == MAX_SUBJECTS
    assert len(json.dumps(document)) < 200_000


def unanswered(number: int, server: str = "192.0.2.1") -> KeyProblem:
    domain = f"d{number}.example"
    detail = f"s1._domainkey.{domain} TXT: {server}: timed out"
    action = f"look at it: `dkimctl check-dns {domain}`"
    key = key_of(domain, "s1")
    return KeyProblem(f"{domain} s1", "no answer", Urgency.NONE, detail, action, True, key)


def test_problems_of_one_cause_are_one_item_without_a_name():
    dead, other = [unanswered(number) for number in range(9)], unanswered(9, "192.0.2.2")
    document = read(Notice(new=pairs(*dead, other), over=list(map(alarm, dead)), still=pairs(CALM)))
    first, last = document["new"]
    assert (first["count"], first["subjects"]) == (9, [problem.subject for problem in dead])
    assert first["detail"] == "FQDN TXT: 192.0.2.1: timed out"
    assert first["action"] == "look at it: `dkimctl check-dns DOMAIN`"
    assert (last["count"], last["action"]) == (1, other.action)
    assert [item["count"] for item in document["over"]] == [9]
    assert document["text"] == (
        "dkimctl: 10 new problems: d0.example s1, d1.example s1, d2.example s1, … and 6 more "
        "(no answer), d9.example s1 (no answer); 9 problems over: d0.example s1, d1.example s1, "
        "d2.example s1, … and 6 more (no answer); 1 earlier problem not solved yet"
    )


def test_what_began_at_another_time_is_another_item():
    first, second = pairs(unanswered(1), unanswered(2))
    earlier = (first[0], first[1]._replace(first_seen=NOON - DAY))
    assert len(read(Notice(still=[earlier, second]))["still"]) == 2
    assert len(read(Notice(over=[earlier[1], second[1]]))["over"]) == 2


def test_a_long_text_is_cut():
    huge = KeyProblem("a.example s1", "x" * 10**6, Urgency.NONE, "y" * 10**6, "z" * 10**6)
    assert len(json.dumps(read(Notice(new=pairs(huge))))) < 10_000


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "two\nlines", "\x7f", "\u202eevil", "\ud800"])
def test_text_of_others_is_printable_even_when_it_is_decoded(hostile):
    problem = KeyProblem(hostile, hostile, Urgency.NONE, hostile, hostile)
    data = notice_document(Notice(new=pairs(problem)), profile="default", now=NOON)
    assert data.decode("ascii").removesuffix("\n").isprintable()
    item = json.loads(data)["new"][0]
    texts = (*item.values(), *item["subjects"], json.loads(data)["text"])
    assert all(text.isprintable() for text in texts if isinstance(text, str))


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts")

DOCUMENT = b'{"version": 1}\n'
HUGE = b"x" * (4 << 20)  # more than a pipe holds


@pytest.fixture
def script(tmp_path):
    """Write a shell script, and give the command that runs it."""

    def write(text: str, mode: int = 0o755) -> list[str]:
        path = tmp_path / "page"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(mode)
        return [str(path), "--token", "topsecret"]

    return write


def failure(words, **options) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        run_notice_program(words, DOCUMENT, **options)
    error = caught.value
    assert "topsecret" not in f"{error.message}{error.hint}"
    assert error.hint
    return error


def test_the_program_does_not_inherit_our_secrets(script, tmp_path, monkeypatch):
    for name in (*OUR_SECRETS, "PAGER_KEY"):
        monkeypatch.setenv(name, "its own")
    run_notice_program(script(f"env > {tmp_path}/env"), DOCUMENT)
    lines = (tmp_path / "env").read_text()
    assert "PAGER_KEY=its own" in lines
    assert [name for name in OUR_SECRETS if name in lines] == []


def test_what_cannot_be_run_is_named_and_escaped(tmp_path):
    assert failure(["/bin/true", "a\0b"]).message == 'cannot run "/bin/true" to notify: invalid'
    assert "\x1b" not in failure([f"{tmp_path}/\x1b[31m"]).message


def test_no_shell_reads_the_command(script, tmp_path):
    words = script(f'echo "$1" > {tmp_path}/word')
    run_notice_program([words[0], "$(touch x); `id` *"], DOCUMENT)
    assert (tmp_path / "word").read_text() == "$(touch x); `id` *\n"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [("exit 7", 0o755, '/page" failed with exit status 7'),
     ("kill -9 $$", 0o755, '/page" was killed by signal 9'),
     ("exit", 0o644, "to notify: Permission denied")],
)  # fmt: skip
def test_a_program_that_fails(script, text, mode, said):
    assert failure(script(text, mode)).message.endswith(said)


def test_without_space_for_the_document_the_program_is_not_run(script, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    error = failure(script(f"touch {tmp_path}/ran"))
    assert error.message.endswith("to notify: No such file or directory")
    assert not (tmp_path / "ran").exists()


def test_a_program_that_does_not_read_all_is_no_error(script):
    for text in ("exec <&-; exit 0", "head -c 1 > /dev/null"):
        run_notice_program(script(text), HUGE)


def test_a_program_that_hangs_is_killed_with_all_that_it_started(script, tmp_path):
    started = time.monotonic()
    words = script(f"trap '' TERM\nsleep 61 & echo $! > {tmp_path}/pid\nsleep 62")
    error = failure(words, seconds=0.5)
    assert time.monotonic() - started < 10
    assert error.message.endswith('/page" did not end within 1 s, and was killed')
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_ctrl_c_ends_the_program(script, tmp_path):
    words = script(f"echo $$ > {tmp_path}/pid; exec sleep 60")

    def interrupt() -> None:
        wait_for(tmp_path / "pid")
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_notice_program(words, DOCUMENT)
    thread.join()
    assert has_ended(int((tmp_path / "pid").read_text()))


def wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists() and path.read_text().strip():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} was not written")


def has_ended(pid: int) -> bool:
    """Whether the process is gone, or dead and not yet waited for, within ten seconds."""
    for _ in range(200):
        if not _is_running(pid):
            return True
        time.sleep(0.05)
    return False


def _is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    if stat.parents[1].is_dir():  # Linux, which tells a dead one that nobody waits for
        return stat.exists() and ") Z " not in stat.read_text()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


SECRET_PATH = "/services/T0PSECRET?token=t0psecret"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def serve(tmp_path):
    """Start a server over TLS that answers with these pieces; gives it and its CA file."""
    with contextlib.ExitStack() as running:

        def start(say, host: str = "127.0.0.1", days: int = 30):
            bundle, tls = hostile.make_certificate(tmp_path, host, days=days)
            server = hostile.HostileServer(say, tls)
            running.callback(server.close)
            return server, str(bundle)

        yield start


def post(url: str, ca_bundle: str | None, timeout: float = 10.0) -> None:
    with HttpClient.over_network(timeout=timeout, ca_bundle=ca_bundle) as http:
        post_notice(http, url + SECRET_PATH, DOCUMENT)


def failure_in_webhook(url: str, ca_bundle: str | None, timeout: float = 10.0) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        post(url, ca_bundle, timeout)
    error = caught.value
    assert "secret" not in f"{error.message}{error.hint}".lower()
    assert url.removeprefix("https://") in error.message
    assert error.hint
    return error


@pytest.mark.parametrize("status", [400, 503])
def test_an_error_status_is_named(serve, status):
    answer = b"HTTP/1.1 %d x\r\nContent-Length: 9\r\n\r\nt0psecret" % status
    server, bundle = serve(lambda request: [answer])
    assert failure_in_webhook(server.url, bundle).message.endswith(f"answered {status}")


def test_redirects_are_not_followed(serve, scripted_server):
    location = f"Location: {scripted_server.url}/t0psecret".encode()
    answer = b"HTTP/1.1 307 Moved\r\n" + location + b"\r\nContent-Length: 0\r\n\r\n"
    server, bundle = serve(lambda request: [answer])
    error = failure_in_webhook(server.url, bundle)
    assert error.message.endswith("answered 307")
    assert "redirects are not followed" in error.hint
    assert scripted_server.requests == []


def test_the_log_has_no_secret_of_the_url(serve, caplog):
    server, bundle = serve(lambda request: [OK])
    with caplog.at_level(logging.DEBUG, "dkimctl.http"):
        post(server.url, bundle)
    assert f"POST {server.url}: 200" in caplog.text
    assert "t0psecret" not in caplog.text.lower()
