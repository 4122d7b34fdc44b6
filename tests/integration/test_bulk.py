"""Large runs of the real command line: stopped, repeated, concurrent, without answers."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time

import pytest

from portfolio import ENVIRONMENT, Portfolio, fill

posix = pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")


@pytest.fixture
def sent(registering):
    """The domains that the service received, sorted."""
    return lambda: sorted(entry["sign_domain"] for entry in registering.entries)


@pytest.fixture
def hold(registering):
    """Hold the requests with this text; gives the events of the first, and that lets all go on."""

    def hold(text: bytes = b""):
        arrived, release = threading.Event(), threading.Event()

        def on_request(request):
            if text in request.body:
                arrived.set()
                release.wait(60)

        registering.on_request = on_request
        return arrived, release

    return hold


def specs(count: int, selector: str | None = "s1") -> str:
    entry = "- {{sign_domain: d{}.example, selector: {}}}\n" if selector else "- d{}.example\n"
    return "".join(entry.format(number, selector) for number in range(count))


class TestStopping:
    @posix
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_requests_in_flight_are_kept_and_the_same_command_continues(
        self, cli, registering, sent, number
    ):
        path, arrived = cli.write("many.yaml", specs(20)), threading.Event()

        def on_request(request):
            if len(sent()) >= 6:
                arrived.set()
                time.sleep(0.5)

        registering.on_request = on_request
        words = ("register", path, "--batch-size", 2, "--concurrency", 2, "--format", "jsonl")
        process = cli.start(*words, stdout=-1, stderr=-1)
        assert arrived.wait(60)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130
        outcomes = [json.loads(line)["outcome"] for line in out.splitlines()]
        done = outcomes.count("created")
        assert sorted(sent()) == sorted(f"d{n}.example" for n in range(done))
        assert outcomes == ["created"] * done + ["pending"] * (20 - done)
        told = err.decode()
        assert "stopping" in told
        assert f"interrupted: {done} of 20 domains are done" in told
        assert "dkimctl register many.yaml --batch-size 2" in told
        assert "Traceback" not in told
        registering.on_request = lambda request: None
        again = cli(*words)
        assert again.status == 0
        assert sent() == sorted(f"d{n}.example" for n in range(20))

    @posix
    def test_a_second_signal_ends_the_run_at_once_and_loses_nothing(self, cli, hold):
        path = cli.write("many.yaml", specs(4))
        arrived, release = hold(b"d2.example")
        process = cli.start("register", path, "--batch-size", 1, stdout=-1, stderr=-1)
        assert arrived.wait(60)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None  # it waits for the requests in flight
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - started < 15  # with one signal it waits up to 30 s
        release.set()
        assert process.returncode == 130
        assert b"Traceback" not in err
        again = cli("register", path, "--format", "json")
        assert again.status == 0
        assert [item["outcome"] for item in again.json["items"]][:2] == ["exists", "exists"]


class TestTwoAtOnce:
    def test_a_second_run_waits_names_the_first_and_has_nothing_to_do(self, cli, hold, sent):
        path = cli.write("some.yaml", specs(4))
        arrived, release = hold(b"d3.example")
        words = ("register", path, "--batch-size", 1, "--concurrency", 1)
        first = cli.start(*words, stdout=-1, stderr=-1)
        assert arrived.wait(60)
        second = cli.start("register", path, stdout=-1, stderr=-1)
        told = second.stderr.readline().decode()
        while "waiting" not in told and told:
            told = second.stderr.readline().decode()
        assert "another register" in told
        assert f"process {first.pid}," in told
        shown = cli("show-dns", "--format", "value")  # readers do not wait
        assert (shown.status, len(shown.out.splitlines())) == (0, 3)
        planned = cli("register", path, "--dry-run", "--format", "json")
        assert [item["outcome"] for item in planned.json["items"]] == ["exists"] * 3 + ["pending"]
        release.set()
        first.communicate(timeout=60)
        assert b"already there 4" in second.communicate(timeout=60)[1]
        assert (first.returncode, second.returncode) == (0, 0)
        assert sent() == sorted(f"d{n}.example" for n in range(4))


@posix
def test_a_stalled_reader_holds_up_neither_answers_nor_the_next_run(cli, hold, sent):
    path = cli.write("many.yaml", specs(3000))
    process = cli.start("register", path, "--format", "json", stdout=-1, stderr=-1)
    deadline = time.monotonic() + 30
    while len(sent()) < 3000 and time.monotonic() < deadline:
        time.sleep(0.1)
    again = cli("register", path)  # waits for the lock, which the first run gives back
    assert (again.status, len(sent())) == (0, 3000)
    shown = cli("show-dns", "--format", "value")
    assert len(shown.out.splitlines()) == 3000
    assert process.poll() is None
    arrived, release = hold()
    other = cli.start("register", cli.write("other.yaml", specs(1, "s2")), stdout=-1, stderr=-1)
    assert arrived.wait(60)
    out, err = process.communicate(timeout=60)  # the intents of the other run are not its own
    release.set()
    other.communicate(timeout=60)
    assert (process.returncode, other.returncode) == (0, 0)
    assert len(json.loads(out)["items"]) == 3000
    assert b"never answered" not in err


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_reader_stalls_loses_no_output(cli, registering, sent, number):
    path = cli.write("many.yaml", specs(800))
    process = cli.start("register", path, "--format", "json", stdout=-1, stderr=-1)
    deadline = time.monotonic() + 60
    while len(sent()) < 800 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert cli("register", path, "--quiet").status == 0  # now the first run only writes
    process.send_signal(number)
    time.sleep(0.5)
    assert process.poll() is None
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["count"] == 800
    report = json.loads(err)
    assert report["summary"] == {"created": 800}
    assert "800 of 800 domains are done" in report["errors"][0]["message"]


def test_late_usage_errors_are_2_even_after_output(cli, registering):
    assert cli("register", "-", "--quiet", stdin=specs(5100)).status == 0
    words = ("register", "-", "--ca-bundle", "absent.pem", "--format", "jsonl")
    done = cli(*words, stdin=specs(5110))
    assert done.status == 2
    assert "absent.pem" in done.err


def test_what_was_never_answered_is_not_sent_again_unless_asked(
    cli, registering, make_answer, sent
):
    """A service that times out on domains for which it should have chosen a selector."""

    def register(*words):
        done = cli("register", path, "--format", "json", *words)
        return done, [item["outcome"] for item in done.json["items"]]

    path = cli.write("names.yaml", specs(2, None))
    registering.on_request = lambda request: make_answer(504, {"message": "timed out"})
    lost, outcomes = register()
    assert (lost.status, outcomes) == (4, ["unknown"] * 2)
    registering.on_request = lambda request: None
    again, outcomes = register()
    assert (again.status, outcomes, len(sent())) == (4, ["unknown"] * 2, 2)
    warned = json.loads(again.err)["warnings"]
    assert any("--retry-unknown" in warning["hint"] for warning in warned)
    planned, outcomes = register("--dry-run")
    assert (planned.status, outcomes) == (1, ["unknown"] * 2)
    other = cli("register", "-", stdin="- {sign_domain: other.example, selector: s1}\n")
    assert (other.status, "d0.example, d1.example" in other.err) == (0, True)
    assert "never answered" in other.err
    assert register("--retry-unknown")[0].status == 0
    assert len(sent()) == 5


class TestAssignedSelectors:
    def test_the_plan_shows_them_and_a_rerun_with_another_template_changes_nothing(
        self, cli, registering, sent
    ):
        path = cli.write("names.yaml", specs(3, None))
        words = ("register", path, "--format", "json", "--assign-selector")
        planned = cli(*words, "s%Y", "--dry-run")
        year = time.strftime("s%Y")
        assert {item["selector"] for item in planned.json["items"]} == {year}
        done = cli(*words, "s%Y")
        assert {item["selector"] for item in done.json["items"]} == {year}
        again = cli(*words, "other")
        assert [item["outcome"] for item in again.json["items"]] == ["exists"] * 3
        assert len(sent()) == 3

    def test_after_a_lost_answer_the_same_selector_is_sent_again(
        self, cli, registering, make_answer
    ):
        path = cli.write("names.yaml", specs(2, None))
        at_once = {"Retry-After": "0"}
        registering.on_request = lambda request: make_answer(504, b"{}", headers=at_once)
        words = ("register", path, "--format", "json", "--assign-selector")
        assert cli(*words, "first").status == 4
        registering.on_request = lambda request: None
        done = cli(*words, "second")
        assert done.status == 0
        assert {item["selector"] for item in done.json["items"]} == {"first"}

    @pytest.mark.parametrize(
        ("template", "domain"), [("s%Q", "a.b"), ("{x}", "a.b"), ("s%Y", "a." * 116 + "example")]
    )
    def test_a_wrong_template_is_2_and_nothing_is_sent(
        self, cli, registering, sent, template, domain
    ):
        done = cli("register", "-", "--assign-selector", template, stdin=f"- {domain}\n")
        assert done.status == 2
        assert "--assign-selector" in done.err
        assert sent() == []


class TestWaiting:
    def test_a_wait_is_reported_once(self, cli, registering, make_answer):
        answers = [make_answer(429, {"message": "slow down"}, {"Retry-After": "1"})] * 2
        registering.on_request = lambda request: answers.pop() if answers else None
        started = time.monotonic()
        done = cli("register", "-", "--format", "value", stdin=specs(4))
        assert done.status == 0
        assert time.monotonic() - started > 2
        (line,) = re.findall(r"^dkimctl: waiting .*$", done.err, re.MULTILINE)
        assert "4 domains" in line
        assert "429" in line

    def test_a_rate_limited_run_loses_nothing(self, cli, registering, make_answer, sent):
        taken = []

        def limited(request):
            now = time.monotonic()
            taken[:] = [at for at in taken if now - at < 1]
            if len(taken) >= 3:  # requests a second
                return make_answer(429, {"message": "slow down"}, {"Retry-After": "1"})
            taken.append(now)
            return None

        registering.on_request = limited
        done = cli("register", "-", "--batch-size", 1, "--format", "json", stdin=specs(12))
        assert done.status == 0, done.err
        assert json.loads(done.err)["summary"] == {"created": 12}


@posix
@pytest.mark.nightly
def test_100_000_keys_are_shown_with_little_memory(cli, key_records):
    fill(Portfolio(cli.home / "state", key_records[2048].partition("p=")[2]), 100_000)
    environment = ENVIRONMENT | {"DKIMCTL_STATE_DIR": str(cli.home / "state")}
    sheet = ("handoff", "--zone", "example", "--output", "sheet.html")
    for mib, words, status in (
        (100, ["list"], 0), (100, ["overview"], 1), (300, sheet, 1), (100, sheet, 4)
    ):  # fmt: skip
        cli.prefix = ["bash", "-c", f'ulimit -v {mib}000; exec "$@"', "bash"]
        done = cli(*words, env=environment)
        assert done.status == status, done.err
        assert done.err.startswith("dkimctl: error: not enough memory") is (status == 4)
        assert "Traceback" not in done.err
