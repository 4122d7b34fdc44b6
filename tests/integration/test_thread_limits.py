"""Where the system allows few threads (`ulimit -u`), commands use those; with none they say so.

What a run of `register` has sent is in the ledger, whatever the limit.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing

import pytest

from ports import free_port
from processes import login_words
from thread_limits import limit_words, require_limits, user_id

ENOUGH = 500
LIMITS = (1, 2, 3, 4, 5, 6, 11, 12)  # the last one is enough for all threads of `register`
FORMAT = ("--format", "json")


@pytest.fixture
def limited(cli):
    """`cli` with at most `count` threads, in a home of its own; the same user for each count."""
    require_limits()

    def limited(count: int):
        cli.prefix = limit_words(count)
        return cli

    if os.getuid() == 0:
        os.chown(cli.home, user_id(), user_id())
    return limited


def specs(count: int) -> str:
    """Entries with and without a selector, in more than one domain for each limit."""
    names = [f"d{number}.limit{count}.example" for number in range(6)]
    entries = [f"- {{sign_domain: {name}, selector: s1, enable: false}}\n" for name in names[:3]]
    entries += [f"- {{sign_domain: {name}, enable: false}}\n" for name in names[3:]]
    return "".join(entries)


def in_service(path, count: int) -> set[tuple[str, str]]:
    """What the service has for the domains of a limit."""
    if not path.exists():
        return set()
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT sign_domain, selector FROM registrations")
        return {row for row in rows if row[0].endswith(f".limit{count}.example")}


def in_ledger(limited, count: int, *words, env=None) -> set[tuple[str, str]]:
    done = limited(ENOUGH)("show-dns", *FORMAT, *words, f"*.limit{count}.example", env=env)
    items = json.loads(done.out)["items"] if done.out else []
    return {(item["sign_domain"], item["selector"]) for item in items}


def check(done, count: int) -> None:
    """The command worked, or told why not."""
    assert "defect" not in done.err
    assert done.status in (0, 2), done.err
    if done.status == 2:
        assert "not allow another thread" in done.err
        assert "ulimit -u" in done.err
        assert count <= 3, done.err


@pytest.mark.parametrize("count", LIMITS)
def test_register_in_the_sandbox(limited, count):
    path = limited(count).write("domains.yaml", specs(count))
    words = ("register", "--sandbox", path, "--batch-size", 1, *FORMAT)
    done = limited(count)(*words)
    check(done, count)
    assert (done.status == 2) == (count == 1)
    data = next(limited(count).home.rglob("sandbox.db"), limited(count).home / "none")
    registered = in_service(data, count)
    assert registered == in_ledger(limited, count, "--sandbox")
    assert len(registered) == (0 if done.status else 6)
    again = limited(ENOUGH)(*words)
    assert (again.status, len(in_service(data, count))) == (0, 6), again.err


@pytest.mark.parametrize("count", LIMITS)
def test_register_over_http(limited, count, live_service, account):
    path = limited(count).write("domains.yaml", specs(count))
    done = limited(count)("register", path, "--batch-size", 1, *FORMAT, env=account)
    check(done, count)
    assert (done.status == 2) == (count < 3)
    registered = in_service(live_service.cli.home / "service.db", count)
    assert registered == in_ledger(limited, count, env=account)
    assert len(registered) == (0 if done.status else 6)
    if done.status == 0:
        warned = "threads for requests" in done.err
        assert warned == (count < 12)  # itself, the deadlines, eight, and two in reserve


@pytest.mark.parametrize("count", [1, 2, 3])
def test_login_and_other_requests(limited, count, account):
    login = login_words(account)
    secret = account["DKIMCTL_CLIENT_SECRET"]
    for words in (login, ["token"], ["api", "DELETE", "/send/1"]):
        done = limited(count)(*words, stdin=secret, env=account if words != login else {})
        assert "defect" not in done.err
        assert ("not allow another thread" in done.err) == (count == 1), done.err


@pytest.mark.parametrize("count", [1, 2])
def test_a_keyring_that_cannot_be_asked_is_named(limited, count, account):
    """It is asked in a thread, since it may hang."""
    known = {name: text for name, text in account.items() if not name.endswith("SECRET")}
    done = limited(count)("token", "--credential-store", "keyring", env=known)
    assert "defect" not in done.err
    assert (done.status, "keyring" in done.err) == (3, True), done.err


def test_without_threads_dns_is_asked_and_the_ledger_shown(limited):
    path = limited(ENOUGH).write("domains.yaml", specs(0))
    registered = limited(ENOUGH)("register", "--sandbox", path, *FORMAT)
    assert registered.status == 0, registered.err
    shown = limited(1)("show-dns", "--sandbox", *FORMAT)
    assert (shown.status, shown.json["count"]) == (0, 6), shown.err
    again = limited(1)("register", "--sandbox", path, *FORMAT)  # sends nothing
    assert (again.status, again.json["count"]) == (0, 6), again.err
    checked = limited(1)("check-dns", "--sandbox", "--server", f"127.0.0.1:{free_port()}", *FORMAT)
    assert checked.status == 4, checked.err
    assert [item["verdict"] for item in checked.json["items"]] == ["no answer"] * 6
    zones = limited(1)("show-dns", "--sandbox", "--format", "octodns", "--find-zones")
    assert "defect" not in zones.err


def test_serve(limited):
    check(limited(1)("serve", "--port", 0), 1)
