"""Runs, day by day: what they do, and what they leave."""

from __future__ import annotations

import contextlib
import multiprocessing
import shutil
import signal
from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.errors import DnsRefused, ExitCode, Throttled
from dkimctl.models import DomainSpec, Registration, key_of
from dkimctl.names import Selection
from dkimctl.publishing.plan import Access
from dkimctl.rotation.due import RunPolicy, State, Step
from dkimctl.rotation.life import read_keys
from dkimctl.rotation.run import RotationRun
from dkimctl.settings.rotation import Policies, RotationSettings
from ledgers import histories_of, require_events_agree
from rotation_world import Provider, World, run_until

A = "a.example"


@pytest.fixture
def world(tmp_path, key_records):
    with contextlib.closing(World(tmp_path, key_records[2048].partition("p=")[2])) as world:
        yield world


def done(report):
    return [
        (task.step.value, task.registration.selector)
        for task in report.tasks
        if task.state is State.DONE
    ]


def states(report):
    return [(task.step.value, task.state.value) for task in report.tasks]


def fqdn(selector, domain=A):
    return f"{selector}._domainkey.{domain}"


@pytest.fixture
def old(world):
    """A key that is published, and half a year old in a week: it gets a successor today."""
    world.pass_time(days=7)
    world.register(A)
    assert done(world.run()) == [("publish", "s1")]
    world.pass_time(days=173)
    return world


@pytest.mark.parametrize(("hours", "most"), [(0, 0), (25, 0), (42, 0), (48, 6)])
def test_no_key_is_older_than_its_age_although_a_run_is_late(old, hours, most):
    """Such as from a timer that runs once a day, with some delay at random."""
    created = old.now - timedelta(days=173)
    old.pass_time(hours=hours)
    old.run()
    [new] = [one for one in old.read("service").values() if one["regist_date"] > "2027-06"]
    start = datetime.fromisoformat(new["start_date"])
    assert start - created == timedelta(days=180, hours=most)
    assert start - old.now >= timedelta(days=5.25)


@pytest.mark.parametrize(("until", "is_told"), [(1, False), (2, True)])
def test_in_a_freeze_nothing_is_registered_or_removed(old, until, is_told):
    """The key is due on 30 June, and reaches `max_age` on 7 July."""
    freeze = [(datetime(2027, 6, 25, tzinfo=UTC), datetime(2027, 7, until, tzinfo=UTC))]
    freeze.append((datetime(2027, 7, 20, tzinfo=UTC), datetime(2027, 8, 1, tzinfo=UTC)))
    settings = {"freeze": tuple(freeze)}
    for is_dry in (True, False):
        report = old.run(is_dry=is_dry, **settings)
        assert states(report) == [("register", "blocked")] * is_told
    assert old.keys() == {f"s1 {A}"}
    old.pass_time(days=until)
    assert [step for step, _ in done(old.run(**settings))] == ["register", "publish"]
    old.now = datetime(2027, 7, 25, tzinfo=UTC)
    [task] = old.run(**settings).tasks
    assert (task.step, task.state) == ("remove", "waiting")
    assert "nothing is removed before 2027-08-01 (freeze)" in task.reason
    assert fqdn("s1") in old.records
    old.now = datetime(2027, 8, 1, tzinfo=UTC)
    assert done(old.run(**settings)) == [("remove", "s1")]


def test_keys_of_one_day_come_early_so_that_the_limit_delays_none(world):
    world.register(*(f"{number}.example" for number in range(5)))
    world.run()
    world.pass_time(days=171)
    for _ in range(3):
        world.run(limit=2)
        world.pass_time(days=1)
    starts = sorted(one["start_date"] for one in world.read("service").values())[5:]
    assert [start[5:10] for start in starts] == ["06-28", "06-28", "06-29", "06-29", "06-30"]


def test_each_policy_has_its_own_limit_and_keys(world):
    world.register("a.example", "b.example", "c.test", "d.test")
    world.pass_time(days=200)
    policies = Policies([
        RotationSettings(domains=("*.example",), limit=1, key_len=1024, selectors="k%y-{domain}"),
        RotationSettings(domains=("*.test",), limit=1),
    ])  # fmt: skip
    policy = RunPolicy(policies, 0.0)
    report = RotationRun(Selection(), policy, world.tools()).execute()
    assert report.postponed == 2
    new = world.keys() - {f"s1 {name}" for name in ("a.example", "b.example", "c.test", "d.test")}
    assert "s20270720 c.test" in new
    assert any(key.startswith("k27-") and key.endswith(" a.example") for key in new)
    assert any("1024-bit keys for 1 domain (a.example)" in text for text in world.warnings)


def test_the_oldest_come_first_and_a_day_has_a_limit(world):
    for number in range(3):
        world.register(f"{number}.example")
        world.pass_time(days=-1)
    world.pass_time(days=200)
    assert world.run(limit=2).postponed == 1
    assert {"s20270717 2.example", "s20270717 1.example"} <= world.keys()
    assert world.run(limit=2).postponed == 1, "the limit is that of the day"
    world.pass_time(days=1)
    assert world.run(limit=2).postponed == 0


def test_the_selector_of_a_closed_key_is_never_used_again(world):
    world.register(A, selector="s20271227")  # the name for the day of the second rotation
    for days in (180, 22):
        world.pass_time(days=days)
        report = world.run()
    assert done(report) == [("remove", "s20271227")]
    world.pass_time(days=158)
    assert done(world.run())[0] == ("register", "s20271227-2")


def test_a_record_that_servers_keep_is_told_after_a_while(old):
    old.run()
    old.pass_time(days=22)
    old.stale = {fqdn("s1"): old.records[fqdn("s1")]}
    assert states(old.run()) == [("remove", "waiting")]
    assert fqdn("s1") not in old.records
    old.pass_time(days=6)
    assert states(old.run()) == [("remove", "waiting")]
    old.pass_time(days=2)
    report = old.run()
    assert states(report) == [("remove", "blocked")]
    assert report.tasks[0].reason == "DNS now: published; to be removed since 2027-07-21"
    old.silent = {fqdn("s1")}
    for old.is_covered in (False, True):
        [task] = old.run().tasks
        assert (task.state, list(task.exit_codes())) == ("waiting", [4])
    old.silent = set()
    old.stale = {}
    assert done(old.run()) == [("remove", "s1")]


def test_a_foreign_record_in_the_way_is_told(old):
    old.run()
    old.write("dns", old.records | {fqdn("s20270630"): "hello"})
    report = old.run()
    [task] = report.tasks
    assert (task.step, task.state) == (Step.PUBLISH, State.BLOCKED)
    assert "not a DKIM key record" in task.reason
    assert {*report.exit_codes()} == {ExitCode.NO}
    assert old.records[fqdn("s20270630")] == "hello"


def test_a_service_that_is_down_does_not_keep_dns_from_being_done_but_nothing_is_removed(old):
    old.service_error = Throttled("down", retry_after=60)
    old.write("dns", {})
    report = old.run()
    assert states(report) == [("register", "due"), ("publish", "done")]
    assert {*report.exit_codes()} == {ExitCode.SERVICE}
    assert report.unknown == {Step.REGISTER, Step.REMOVE}
    old.service_error = None
    assert ("register", "s20270630") in done(old.run())
    old.pass_time(days=22)
    old.service_error = Throttled("down", retry_after=60)
    assert states(old.run()) == [("remove", "due")]
    assert fqdn("s1") in old.records


def test_a_dry_run_says_what_is_due_and_does_nothing(old):
    def everything():
        with old.open_ledger(for_writing=False) as ledger:
            known = histories_of(ledger), [*ledger.closed_keys()], ledger.intents()
        return old.records, old.keys(), old.read("service"), *known

    for step, prepare in (
        ("register", lambda: None),
        ("publish", lambda: old.register("b.example")),
        ("remove", lambda: old.pass_time(days=22)),
    ):
        prepare()
        before = everything()
        report = old.run(is_dry=True)
        assert (step, "due") in states(report)
        assert {task.state for task in report.tasks} == {State.DUE}
        assert report.is_due
        assert everything() == before
        assert step in [done_step for done_step, _ in done(old.run())]


def test_a_dry_run_asks_dns_only_where_its_plan_depends_on_the_answer(old):
    old.register("c.example")
    old.run()
    old.pass_time(days=22)
    old.register("b.example")
    old.write("dns", {name: old.records[name] for name in map(fqdn, ("s1", "s20270630"))})
    old.asked.clear()
    report = old.run(is_dry=True)
    assert states(report) == [("publish", "due"), ("remove", "due")]
    assert {fqdn("s1"), fqdn("s20270630"), fqdn("s1", "b.example")} <= old.asked
    assert not any("c.example" in name for name in old.asked)
    assert report.not_asked == 1, "whether it is still there is not claimed"
    with old.open_ledger(for_writing=True) as ledger:
        ledger.note_looks({key_of("c.example", "s1"): "missing"})
    report = old.run(is_dry=True)
    assert (len(report.tasks), report.not_asked) == (3, 0)
    assert done(old.run()) == [("publish", "s1"), ("publish", "s1"), ("remove", "s1")]


def test_a_record_that_is_gone_already_is_closed_but_by_no_dry_run(old):
    old.run()
    old.pass_time(days=22)
    old.write("dns", {fqdn("s20270630"): old.records[fqdn("s20270630")]})
    assert states(old.run(is_dry=True)) == [("remove", "due")]
    assert old.closed() == set()
    assert done(old.run()) == [("remove", "s1")]
    assert old.closed() == {f"s1 {A}"}


def refuse(*_):
    raise DnsRefused("no")


@pytest.mark.parametrize(
    ("method", "how"),
    [("read", refuse),
     ("apply", lambda self, zone, changes: (each.failed(DnsRefused("no")) for each in changes))],
)  # fmt: skip
def test_a_target_that_fails_is_told_and_decides_the_exit_code(world, monkeypatch, method, how):
    world.register(A)
    monkeypatch.setattr(Provider, method, how)
    report = world.run()
    [task] = report.tasks
    assert (task.step, task.state, task.reason) == (Step.PUBLISH, State.FAILED, "no")
    assert task.urgency == "signing"
    assert {*report.exit_codes()} == {ExitCode.NO, ExitCode.AUTH}
    world.write("dns", {one["fqdn"]: one["value"] for one in world.read("service").values()})
    codes = {*world.run().exit_codes()}  # the next change would fail, too
    assert codes == ({ExitCode.AUTH} if method == "read" else set())


def test_what_is_written_and_not_seen_is_not_called_done(world):
    world.register(A)
    world.silent = {fqdn("s1")}
    [task] = world.run().tasks
    assert (task.state, task.urgency) == (State.WAITING, "signing")
    assert task.reason.startswith("written; DNS now: no answer")
    assert world.records.keys() == {fqdn("s1")}


@pytest.mark.parametrize("silent", [{"s1", "s20270630"}, {"s20270630"}])
def test_dns_that_is_down_loses_nothing_and_removes_nothing(old, silent):
    old.run()
    old.pass_time(days=22)
    old.silent = set(map(fqdn, silent))
    report = old.run()
    assert {task.state for task in report.tasks} == {State.WAITING}
    assert ExitCode.SERVICE in {*report.exit_codes()}
    assert old.records.keys() == {fqdn("s1"), fqdn("s20270630")}
    old.silent = set()
    assert done(old.run()) == [("remove", "s1")]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda key: key | {"enable": False}, "it is disabled at the service"),
        (lambda key: key | {"value": f"{key['value']}; t=s"}, "has another key for it now"),
    ],
)
def test_a_successor_that_the_service_does_not_confirm_keeps_the_old_key(old, change, why):
    old.run()
    old.pass_time(days=22)
    service = old.read("service")
    service[f"s20270630 {A}"] = change(service[f"s20270630 {A}"])
    old.write("service", service)
    report = old.run()
    [reason] = [task.reason for task in report.tasks if task.step is Step.REMOVE]
    assert "its successor s20270630: " in reason
    assert why in reason
    assert ExitCode.NO in {*report.exit_codes()}
    assert fqdn("s1") in old.records
    old.run()
    assert old.keys() - {f"s1 {A}"} == {f"s20270630 {A}"}, "no second successor"


def test_a_selector_of_another_account_is_left_to_it(old):
    old.answers["s20270630"] = Registration("", code="409", message="exists")
    report = old.run()
    assert done(report) == [("register", "s20270630-2"), ("publish", "s20270630-2")]
    assert [*report.exit_codes()] == []


def test_selectors_that_are_all_of_others_are_told(old):
    names = ("s20270630", "s20270630-2", "s20270630-3")
    old.answers = dict.fromkeys(names, Registration("", code="409", message="exists"))
    report = old.run()
    [task] = report.tasks
    assert (task.state, task.registration.selector) == (State.BLOCKED, "s20270630-3")
    assert {*report.exit_codes()} == {ExitCode.NO}


def test_a_request_that_another_successor_has_overtaken_makes_no_second_one(old):
    lost = DomainSpec(A, "lost", 2048, "2027-07-09T10:00+00:00", 0, enable=True, replaces="s1")
    with old.open_ledger(for_writing=True) as ledger:
        ledger.note_replacements({lost.key: "s1", key_of(A, "s2"): "s1"})
        ledger.commit(begun=[[lost]])
    old.register(A, selector="s2", start_date="2027-07-09T10:00+00:00")
    assert ("register", "lost") in done(old.run())
    assert old.read("service")[f"lost {A}"]["enable"] is False
    assert old.records.keys() == {fqdn("s1"), fqdn("s2")}


@pytest.mark.slow
def test_an_answer_of_500_is_asked_again_with_the_same_selector(old):
    old.answers["s20270630"] = Registration("", code="500", message="later")
    report = old.run()
    assert states(report)[0] == ("register", "failed")
    assert ExitCode.SERVICE in {*report.exit_codes()}
    old.pass_time(days=2)
    del old.answers["s20270630"]
    assert ("register", "s20270630") in done(old.run())
    assert old.keys() == {f"s1 {A}", f"s20270630 {A}"}


@pytest.mark.parametrize(("selector", "is_held"), [("s1", False), ("other", True)])
def test_a_request_without_an_answer_holds_its_domain_unless_the_key_is_known(
    old, selector, is_held
):
    """Such as one of `register --refresh` that was killed."""
    with old.open_ledger(for_writing=True) as ledger:
        ledger.commit(begun=[[DomainSpec(A, selector)]])
    report = old.run()
    assert (("register", "blocked") in states(report)) == is_held
    assert (("register", "s20270630") in done(report)) != is_held


def test_a_clock_that_was_set_back(old):
    old.run()
    records, keys = old.records, old.keys()
    old.pass_time(days=-400)
    report = old.run()
    assert report.tasks == []
    assert (old.records, old.keys()) == (records, keys)
    old.pass_time(days=422)
    old.run()
    assert old.records == records, "seen only while the clock was wrong: the grace period begins"
    old.pass_time(days=15)
    assert done(old.run()) == [("remove", "s1")]


AHEAD = [timedelta(days=40), timedelta(hours=1, seconds=1)]


class TestClocks:
    """The service's clock, and that of the machine."""

    @pytest.mark.parametrize("ahead", [*AHEAD, *(-ahead for ahead in AHEAD)])
    def test_nothing_is_registered_or_removed_while_they_differ(self, old, ahead):
        old.service_now = old.now - ahead
        old.run()
        assert old.keys() == {f"s1 {A}"}
        old.service_now = None
        old.run()
        old.pass_time(days=22)
        old.service_now = old.now - ahead
        report = old.run()
        assert states(report) == [("remove", "due")]
        assert fqdn("s1") in old.records
        [error] = report.errors
        assert {*report.exit_codes()} == {ExitCode.NO}
        for time in (old.now, old.service_now):
            assert f"{time:%Y-%m-%d %H:%M} UTC" in error.message
        assert "chronyc" in error.hint

    @pytest.mark.parametrize("services", [timedelta(minutes=50), timedelta(minutes=-50)])
    def test_a_removal_is_due_when_both_say_so(self, old, services):
        old.run()
        old.pass_time(days=7)
        old.pass_time(days=14, seconds=1)
        old.service_now = old.now + services
        assert bool(done(old.run())) == (services > timedelta())
        old.pass_time(hours=1)
        old.service_now = old.now + services
        old.run()
        assert fqdn("s1") not in old.records

    @pytest.mark.parametrize("begin", [7, 25])
    def test_a_grace_period_in_which_they_differed_begins_again(self, old, begin):
        """The service may have begun to sign that much later."""
        old.run()
        old.pass_time(days=begin)
        old.service_now = old.now - timedelta(days=16)
        assert [error.code for error in old.run().errors] == ["clock"], "also if nothing is due"
        old.service_now = None
        for _ in range(14):
            assert old.run().tasks == []
            old.pass_time(days=1)
        assert done(old.run()) == [("remove", "s1")]

    def test_a_service_without_a_date(self, old):
        old.tells_time = False
        report = old.run()
        assert (states(report), {*report.exit_codes()}) == ([("register", "due")], {ExitCode.NO})
        assert "does not say what time it is" in report.errors[0].message
        old.tells_time = True
        old.run()
        old.tells_time = False
        assert old.run().errors == [], "nothing is due"
        old.pass_time(days=22)
        assert (states(old.run()), fqdn("s1") in old.records) == ([("remove", "due")], True)

    def test_a_clock_that_is_set_while_a_run_waits_for_another_registers_nothing(self, old):
        tools, services = old.tools(), old.now

        def wait(ledger_lock=tools.lock_account):
            old.now, old.service_now = old.now - timedelta(days=30), services
            return ledger_lock()

        policy = RunPolicy(Policies([RotationSettings(max_age=timedelta(days=100))]), 0.0, False)
        run = RotationRun(Selection(), policy, tools._replace(lock_account=wait))
        assert [error.code for error in run.execute().errors] == ["clock"]
        assert old.keys() == {f"s1 {A}"}

    def test_a_clock_that_is_set_during_a_run_removes_nothing(self, old, monkeypatch):
        old.run()
        old.pass_time(days=10)
        times = iter([old.now + timedelta(days=12), old.now])
        monkeypatch.setattr(World, "ask_time", lambda self: next(times))
        old.pass_time(days=12)
        assert [error.code for error in old.run().errors] == ["clock"]
        assert fqdn("s1") in old.records


def test_an_old_key_that_the_service_starts_later_signs_again_and_stays(old):
    old.run()
    old.pass_time(days=22)
    service = old.read("service")
    service[f"s1 {A}"]["start_date"] = "2027-07-20T00:00+00:00"
    old.write("service", service)
    report = old.run()
    task = report.tasks[0]
    assert (task.step, task.state, task.registration.selector) == ("remove", "blocked", "s1")
    assert (
        task.reason == "the service signs with it again, from 2027-07-20T00:00+00:00; so it stays"
    )
    assert {*report.exit_codes()} == {ExitCode.NO}
    assert (done(old.run()), fqdn("s1") in old.records) == ([], True)


def test_an_old_key_that_the_service_has_no_more_is_not_enabled_again(old):
    old.run()
    old.pass_time(days=22)
    service = old.read("service")
    del service[f"s1 {A}"]
    old.write("service", service)
    assert "another key" in old.run().tasks[0].reason
    assert old.read("service")[f"s1 {A}"]["enable"] is False


@pytest.mark.parametrize(
    "access",
    [lambda *_: Access(True, False, "no", "do"), lambda *_: Access(True, None, "no", "do"), refuse],
)
def test_no_successor_is_registered_that_could_not_be_published(world, monkeypatch, access):
    """The limit of the day is for those that can be."""
    failing = [f"a{number}.example" for number in range(6)]
    world.register(*failing, "b.example", "c.example")
    world.run()
    world.pass_time(days=180)
    usual = Provider.check_access

    def check_access(self, zone, names):
        return access() if zone in failing else usual(self, zone, names)

    monkeypatch.setattr(Provider, "check_access", check_access)
    report = world.run(limit=1)
    assert ("register", "s20270630") in done(report)
    assert report.postponed == 1
    failed = [task for task in report.tasks if task.state is State.FAILED]
    assert [(task.step, task.registration.sign_domain) for task in failed] == [
        (Step.REGISTER, domain) for domain in failing
    ]
    assert all("could not be published: no" in task.reason for task in failed)
    assert world.keys() - {f"s1 {domain}" for domain in [*failing, "b.example", "c.example"]} == {
        "s20270630 b.example"
    }


def test_successors_that_begin_too_late_hold_nothing_up_in_silence(old):
    old.register(A, selector="s20280321", start_date="2028-03-28T10:00+00:00")
    with old.open_ledger(for_writing=True) as ledger:
        ledger.note_replacements({key_of(A, "s20280321"): "s1"})
    report = old.run()
    task = report.tasks[0]
    assert (task.state, task.registration.selector) == (State.BLOCKED, "s1")
    assert "s20280321, which follows it, does not start before 2028-03-2" in task.reason
    assert {*report.exit_codes()} == {ExitCode.NO}
    old.register(A, selector="s2", start_date="2027-07-07T10:00+00:00")
    assert old.run().tasks[0].step is Step.PUBLISH


DOMAINS = ("a.example", "b.example")


@pytest.fixture(scope="module")
def processes():
    """A server that forks processes which have imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rotation_world"])
    return context


def kill(processes, world, at):
    """Kill a run at an effect; tells whether it came so far."""
    arguments = str(world.directory), world.key, world.now, at
    process = processes.Process(target=run_until, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    with world.open_ledger(for_writing=False) as ledger:
        require_events_agree(ledger)
    return process.exitcode != 0


def outcome(world):
    """What counts, whatever the way to it: keys, closed keys, records, and who replaces whom."""
    with world.open_ledger(for_writing=False) as ledger:
        replaces = {key: one.replaces for key, one in histories_of(ledger).items() if one.replaces}
        assert ledger.intents() == []
    return world.keys(), world.closed(), world.records, world.read("service"), replaces


def registered(world):
    world.register(*DOMAINS)
    world.run()
    world.pass_time(days=180)


def replaced(world):
    registered(world)
    world.run()
    world.pass_time(days=22)


@pytest.mark.slow
@pytest.mark.parametrize("before", [registered, replaced])
def test_the_next_run_ends_as_if_nothing_had_happened(processes, tmp_path, key_records, before):
    key = key_records[2048].partition("p=")[2]
    (tmp_path / "start").mkdir()
    start = World(tmp_path / "start", key)
    before(start)

    def copy(name):
        shutil.copytree(start.directory, tmp_path / name)
        return World(tmp_path / name, key, start.now)

    undisturbed = copy("undisturbed")
    assert undisturbed.run().tasks
    at = 1
    while kill(processes, world := copy(str(at)), at):
        for again in range(3):  # and the next ones are killed, too
            kill(processes, world, 3 * again + 2)
        world.run()
        assert outcome(world) == outcome(undisturbed), at
        assert world.run().tasks == []
        at += 1
    assert at > 10


def test_what_is_shown_of_a_key_is_what_runs_do_with_it(world):
    def stage():
        with world.open_ledger(for_writing=False) as ledger:
            keys = read_keys(ledger, Selection(), Policies(), world.now)
            [key] = [key for key in keys if key.selector == "s1"]
        days = key.due and round((key.due - world.now).total_seconds() / 86400)
        return (key.stage, key.action, days)

    world.register(A, start_date="2027-01-08T10:00+00:00")
    assert stage() == ("registered", "publish", 4)  # then it is urgent
    world.run()
    assert stage() == ("published", "wait", 7)
    world.pass_time(days=8)
    assert stage() == ("signing", "register successor", 165)
    world.pass_time(days=165)
    assert stage() == ("signing", "register successor", 0)
    world.is_covered = False
    world.run()
    assert stage() == ("successor registered", "wait", 7)
    world.is_covered = True
    world.run()
    assert stage() == ("successor published", "wait", 7)
    world.pass_time(days=7, minutes=1)
    assert stage() == ("grace period", "remove", 14)
    world.pass_time(days=14)
    world.is_covered = False
    world.run()
    assert stage() == ("retired", "remove", 0)
    world.is_covered = True
    world.run()
    assert stage() == ("removed", "none", None)


@pytest.fixture
def removed(old):
    """A key that has a successor, and whose record was removed yesterday."""
    for days in (0, 8, 15):
        old.pass_time(days=days)
        old.run()
    assert old.closed() == {f"s1 {A}"}
    old.pass_time(days=1)
    return old


def in_life(world, selector):
    with world.open_ledger(for_writing=False) as ledger:
        keys = read_keys(ledger, Selection(), Policies(), world.now)
        return next(key for key in keys if key.selector == selector)


def change(world, selector, **fields):
    """Have the service change a key."""
    service = world.read("service")
    service[f"{selector} {A}"] |= fields
    world.write("service", service)


@pytest.mark.parametrize(
    "change_service",
    [
        lambda world, new: change(world, "s1", start_date=world.now.isoformat()),
        lambda world, new: change(world, new, enable=False),
        lambda world, new: change(world, new, start_date=f"{world.now + timedelta(days=9)}"),
    ],
    ids=["it starts again", "its successor is disabled", "its successor starts later"],
)
def test_a_removed_key_that_the_service_signs_with_again_is_put_back_and_stays(
    removed, change_service
):
    [new] = removed.keys()
    change_service(removed, new.partition(" ")[0])
    removed.is_covered = False
    [task] = (task for task in removed.run().tasks if task.registration.selector == "s1")
    assert (task.step, task.state, task.urgency) == ("publish", "by hand", "signing")
    key = in_life(removed, "s1")
    assert key.note.startswith("it was removed from DNS on 2027-07-23, but the service's answers")
    assert (key.urgency, key.action) == ("signing", "publish")
    removed.is_covered = True
    for day in range(8):
        steps = done(removed.run())
        assert (("publish", "s1") in steps) is (day == 0)
        assert ("remove", "s1") not in steps
        removed.pass_time(days=1)
    assert "n=s1;" in removed.records[fqdn("s1")]


@pytest.mark.parametrize("enable", [True, False])
def test_a_removed_key_that_does_not_sign_again_stays_closed(removed, enable):
    """Although it is enabled, and its successor was not in DNS for a moment."""
    change(removed, "s1", enable=enable)
    at = in_life(removed, "s1").dates.removed_at
    records = removed.read("dns")
    for day in range(30):
        removed.is_covered = day != 3
        removed.write("dns", records if removed.is_covered else {})
        assert ("publish", "s1") not in done(removed.run())
        removed.pass_time(days=1)
        assert removed.closed() == {f"s1 {A}"}
    assert in_life(removed, "s1").dates.removed_at == at
    change(removed, "s1", start_date=removed.now.isoformat())
    assert removed.run().tasks == [], "it is asked for three weeks"


def test_a_killed_question_about_a_removed_key_holds_no_successor_up(removed):
    with removed.open_ledger(for_writing=True) as ledger:
        ledger.commit(begun=[[DomainSpec(A, "s1")]])
    removed.pass_time(days=200)  # longer than such keys are asked for
    report = removed.run()
    assert ("register", "blocked") not in states(report)
    assert any(step == "register" for step, _ in done(report))
    with removed.open_ledger(for_writing=False) as ledger:
        assert ledger.intents() == []
    assert removed.closed() == {f"s1 {A}"}


def test_the_selector_of_a_key_that_the_service_has_no_more_stays_closed(removed):
    service = removed.read("service")
    del service[f"s1 {A}"]
    removed.write("service", service)
    assert removed.run().tasks == []
    assert removed.closed() == {f"s1 {A}"}
    assert removed.read("service")[f"s1 {A}"]["enable"] is False


def test_a_removed_key_that_mail_is_signed_with_is_put_back_for_a_grace_period(removed):
    value = removed.read("service")[f"s1 {A}"]["value"]
    with removed.open_ledger(for_writing=True) as ledger:
        ledger.note_signing([key_of(A, "s1")])
    key = in_life(removed, "s1")
    assert (key.urgency, key.action) == ("signing", "publish")
    assert key.note.endswith("but on 2027-07-24, `dkimctl verify` saw mail signed with it")
    assert done(removed.run()) == [("publish", "s1")]
    for _ in range(14):
        assert removed.records[fqdn("s1")] == value
        assert done(removed.run()) == []
        removed.pass_time(days=1)
    assert done(removed.run()) == [("remove", "s1")]
    assert (removed.closed(), fqdn("s1") in removed.records) == ({f"s1 {A}"}, False)
    assert in_life(removed, "s1").dates.removed_at == removed.now


def test_a_key_with_which_mail_passes_is_told_and_is_removed_on_the_sixth_day_after(old):
    """From the end of the grace period on, and with an exit code when a lead has passed."""
    old.run()
    new = "s20270630"
    seen = []
    for day in range(20, 40):
        old.pass_time(days=1 if day > 20 else 20)
        old.report(new, passed=1000, ago=1)
        if day <= 31:
            old.report("s1", passed=1, ago=1)
        report = old.run()
        seen += [(day, *state, {*report.exit_codes()}) for state in states(report)]
        if day == 31:
            [task] = report.tasks
            assert task.reason == (
                f"still signing: mail passed with it on {old.now - timedelta(days=1):%Y-%m-%d}; "
                "from 192.0.2.0/24"
            )
            assert fqdn("s1") in old.records
    waiting = [(day, "remove", "waiting", set()) for day in range(21, 29)]
    blocked = [(day, "remove", "blocked", {ExitCode.NO}) for day in range(29, 36)]
    assert seen == [*waiting, *blocked, (36, "remove", "done", set())]


def test_a_successor_that_signs_no_mail_is_told_within_the_grace_period(old):
    old.run()
    old.pass_time(days=11)
    old.report("s1", passed=10, ago=2)
    assert old.run().tasks == []
    old.report("s1", passed=10, ago=1)
    [task] = old.run().tasks
    assert (task.step, task.state, [*task.exit_codes()]) == ("remove", "blocked", [ExitCode.NO])
    assert "; mail passed with it on 2027-07-10, and none in the last 5 days with s2" in task.reason
    old.report("s20270630", passed=1, ago=1)
    assert old.run().tasks == []


@pytest.mark.parametrize(
    ("selector", "passed", "failed", "ago", "is_told"),
    [("s20270630", 379, 20, 0, True), ("s20270630", 380, 20, 0, False),
     ("s20270630", 0, 19, 0, False), ("s20270630", 0, 20, 7, False), ("", 0, 90, 0, False),
     ("s1", 0, 20, 6, True)],
)  # fmt: skip
def test_mail_that_fails_is_told_also_of_a_removed_key(
    removed, selector, passed, failed, ago, is_told
):
    removed.report(selector, passed=passed, failed=failed, ago=ago)
    report = removed.run()
    assert [*report.exit_codes()] == []
    told = [(mail.selector, mail.is_removed, str(mail)) for mail in report.failing]
    text = f"{failed} of {passed + failed} messages in the last 7 days, from 198.51.100.0/24"
    assert told == [(selector, selector == "s1", text)] * is_told
    assert removed.run("other.example").failing == []


def test_domains_without_reports_are_named_if_there_are_reports_of_others(world):
    world.register(A, "b.example")
    world.run()
    world.pass_time(days=13)
    world.register("new.example")
    world.pass_time(days=1)
    assert world.run().unreported == []
    world.report("s1", passed=1)
    assert world.run().unreported == ["b.example"]
    world.report("", failed=1, domain="b.example")
    assert world.run().unreported == []
    world.pass_time(days=14)
    assert world.run().unreported == ["new.example"]
    world.pass_time(days=1)
    assert world.run().unreported == [A, "b.example", "new.example"]
    assert world.run("b.*").unreported == ["b.example"]
