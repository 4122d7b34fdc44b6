"""Changes through octoDNS, to a provider that keeps zones in YAML as octoDNS itself does."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from octodns.provider.yaml import YamlProvider
from octodns.record import Create, Delete, Record, Update
from octodns.zone import Zone

from dkimctl.errors import DkimctlError, DnsRefused, NegativeAnswer, ServiceError, UsageError
from dkimctl.models import Secret
from dkimctl.publishing.octodns import OctodnsTarget, is_refusal, load_class
from dkimctl.publishing.plan import NameState
from update_servers import change

ZONE = r"""---
'':
  - {ttl: 60, type: MX, value: {exchange: mail.example.com., preference: 10}}
  - {ttl: 60, type: NS, values: [ns.example.com.]}
_domainkey: {ttl: 60, type: TXT, value: o=-}
kept: {ttl: 60, type: TXT, values: ['another\; value', as it was]}
mail: {ttl: 7, type: A, value: 127.0.0.2}
s1._domainkey.d1: {ttl: 60, type: TXT, value: v=DKIM1\; p=retired}
s1._domainkey.d2: {ttl: 60, type: CNAME, value: key.example.net.}
s2._domainkey.d1: {ttl: 60, type: TXT, value: v=DKIM1\; p=foreign}
sub: {ttl: 60, type: NS, values: [ns.example.com.]}
"""
KEY = "v=DKIM1; k=rsa; p=" + 392 * "A"
D1, D2, D3, D4 = (f"s1._domainkey.d{number}.example.com" for number in (1, 2, 3, 4))
RETIRED = NameState(("v=DKIM1; p=retired",), 60)
SECRET = "hunter2/& and more"


def settings(directory, **more: object) -> dict[str, object]:
    return {"directory": str(directory), "escaped_semicolons": True, **more}


class FailingProvider(YamlProvider):
    """Fails with `failure`, or does what it is told to besides.

    It takes `directory` like any other setting, so it is not known to write files.
    """

    failure: Exception | None = None
    ignored_removals = 0
    records_too = False
    applied: list[object] | None = None

    def __init__(self, *words, nested, **options) -> None:
        super().__init__(*words, **options)
        assert isinstance(nested[0]["token"], str), "revealed"

    def populate(self, zone, target=False, lenient=False):
        if self.failure:
            raise self.failure
        return super().populate(zone, target=target, lenient=lenient)

    def _extra_changes(self, existing, desired, changes):
        if not self.records_too:
            return []
        data = {"type": "A", "ttl": 60, "value": "127.0.0.9"}
        return [Create(Record.new(desired, "extra", data))]

    def _apply(self, plan):
        if self.applied is not None:
            self.applied.append(plan)
        if self.ignored_removals and isinstance(plan.changes[0], Delete):
            type(self).ignored_removals -= 1
        else:
            super()._apply(plan)


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "example.com.yaml").write_text(ZONE)
    return tmp_path


@pytest.fixture
def target(failing) -> OctodnsTarget:
    return failing()


@pytest.fixture
def failing(directory, monkeypatch):
    """A target whose provider fails so."""

    def make(
        failure: Exception | None = None, secret: str = SECRET, **options: object
    ) -> OctodnsTarget:
        monkeypatch.setitem(sys.modules, "providers_of_tests", sys.modules[__name__])
        for name, value in {"failure": failure, **options}.items():
            monkeypatch.setattr(FailingProvider, name, value)
        nested = [{"token": Secret(secret)}]
        return OctodnsTarget(
            "providers_of_tests.FailingProvider",
            lambda: settings(directory, nested=nested),
            3600,
        )

    return make


def records(directory) -> dict[tuple[str, str], object]:
    zone = Zone("example.com.", [])
    YamlProvider("test", **settings(directory)).populate(zone, lenient=True)
    return {(record.fqdn, record._type): record.data for record in zone.records}


def errors(applied) -> dict[str, DkimctlError | None]:
    return {one.fqdn: one.error for one in applied}


def test_a_provider_that_writes_whole_zones_loses_no_other_record(target, directory):
    before = records(directory)
    wanted = {D1: KEY, D3: KEY, D4: KEY}
    states = target.read("example.com", list(wanted))
    assert states == {D1: RETIRED, D3: NameState(), D4: NameState()}
    changes = [change(name, value, states[name]) for name, value in wanted.items()]
    assert errors(target.apply("example.com", changes)) == dict.fromkeys(wanted)
    published = NameState((KEY,), 3600)
    assert target.read("example.com", list(wanted)) == dict.fromkeys(wanted, published)
    ours = {(f"{name}.", "TXT") for name in wanted}
    after = records(directory)
    assert {one: after[one] for one in after.keys() - ours} == {
        one: before[one] for one in before.keys() - ours
    }
    removed = [change(name, None, published) for name in wanted]
    assert errors(target.apply("example.com", removed)) == dict.fromkeys(wanted)
    assert records(directory).keys() == before.keys() - ours


def test_a_name_that_has_changed_meanwhile_is_left_alone(target, directory):
    changes = [change(D1, KEY), change(D2, KEY), change(D3, KEY)]
    done = errors(target.apply("example.com", changes))
    assert done[D3] is None
    for name in (D1, D2):
        assert isinstance(done[name], NegativeAnswer)
        assert "has changed at" in str(done[name])
    assert target.read("example.com", [D1])[D1] == RETIRED


@pytest.mark.parametrize("value", ['a "quoted" value', "back\\slash", "ümlaut", "two\nlines"])
def test_values_without_a_form_in_octodns_are_refused(target, directory, value):
    done = errors(target.apply("example.com", [change(D3, value), change(D4, KEY)]))
    assert "octoDNS has no form" in str(done[D3])
    assert done[D4] is None


class HTTPError(OSError):
    def __init__(self, status: int) -> None:
        super().__init__(f"{status} for url https://api.test/?token={SECRET}")
        self.response = type("Response", (), {"status_code": status})()


class ClientError(Exception):
    response = {"ResponseMetadata": {"HTTPStatusCode": 403}}  # noqa: RUF012 - as in botocore


def with_answer(status: int, content: bytes) -> HTTPError:
    failure = HTTPError(status)
    failure.response.content = content
    return failure


@pytest.mark.parametrize(
    ("failure", "expected", "message"),
    [
        (HTTPError(401), DnsRefused, ""),
        (Exception("PowerDNS unauthorized host=h"), DnsRefused, ""),
        (RuntimeError("zone example.com: no permission"), DnsRefused, ""),
        (ConnectionRefusedError(111, "Connection refused"), ServiceError, "Connection refused"),
        (ValueError(f"a {SECRET}\x1b[31m"), ServiceError, ""),
        (ValueError("a sh%22rt b"), ServiceError, "ValueError"),  # a short secret: withheld
        (KeyError("rrsets"), ServiceError, "KeyError: 'rrsets'"),
        (ClientError("An error occurred ()"), DnsRefused, "An error occurred () (HTTP 403)"),
        (with_answer(400, b'{"errors": ["Invalid API token"]}'), DnsRefused, ""),
        (with_answer(422, f'{{"error": "{SECRET}"}}'.encode()), ServiceError, ""),
        (with_answer(422, b'{"error":\n "has\x1b a CNAME"}'), ServiceError, r'has\x1b a CNAME"}'),
        (with_answer(500, b"<html>"), ServiceError, "token=***"),
        (ValueError("far too long " * 10_000), ServiceError, "far too long fa…"),
    ],
)
def test_failures_say_what_is_known_without_secrets(failing, failure, expected, message):
    target = failing(failure, 'sh"rt\n' if "sh%22rt" in str(failure) else SECRET)
    with pytest.raises(DkimctlError) as caught:
        target.read("example.com", [D1])
    shown = caught.value.message
    assert type(caught.value) is expected
    assert caught.value.__context__ is None
    assert shown.endswith(message)
    assert shown.isprintable()
    assert len(shown) < 400
    assert SECRET not in shown
    assert errors(target.apply("example.com", [change(D3, KEY)]))[D3].message == shown
    with pytest.raises(expected):
        target.check_access("example.com", [D1])


@pytest.mark.parametrize("ignored", [0, 1, 2])
def test_a_long_record_is_written_anew_if_the_provider_does_not_remove_it(
    failing, directory, ignored
):
    applied: list[object] = []
    target = failing(applied=applied, ignored_removals=ignored)
    assert errors(target.apply("example.com", [change(D3, KEY)])) == {D3: None}
    before = target.read("example.com", [D3])[D3]
    error = errors(target.apply("example.com", [change(D3, None, before)]))[D3]
    assert (str(error) if error else "").count(f"removal of {D3}") == (ignored == 2)
    assert ((f"{D3}.", "TXT") in records(directory)) == (ignored == 2)
    again = [Update, Delete] if ignored else []
    assert [type(plan.changes[0]) for plan in applied][1:] == [Delete, *again]


def test_a_plan_with_any_other_change_is_not_applied(failing, directory):
    done = errors(failing(records_too=True).apply("example.com", [change(D3, KEY)]))
    assert "would change A at extra.example.com" in str(done[D3])
    assert (directory / "example.com.yaml").read_text() == ZONE


def test_settings_that_do_not_fit_are_an_error():
    unfit = {"host": "127.0.0.1", "api_key": "k", "no_such": Secret(SECRET)}
    target = OctodnsTarget("octodns_powerdns.PowerDnsProvider", lambda: unfit, 3600)
    with pytest.raises(UsageError, match="no_such"):
        target.read("example.com", [D1])


@pytest.mark.parametrize(
    ("class_name", "message", "hint"),
    [
        ("octodns_none_such.X", "no module octodns_none_such", "pip install octodns-none-such"),
        ("octodns.provider.none.X", "no module octodns.provider.none", "check `class`"),
        ("octodns.provider.yaml.None_", "is not an octoDNS provider", "check `class`"),
        ("octodns_x.X", "no module octodns", "pip install octodns"),
        ("octodns.zone.Zone", "is not an octoDNS provider", "check `class`"),
        # A run that is killed would leave their files cut.
        ("octodns.provider.yaml.YamlProvider", "writes zone files", "`dkimctl show-dns`"),
        ("octodns.provider.yaml.SplitYamlProvider", "writes zone files", "`dkimctl show-dns`"),
        ("octodns_bind.ZoneFileProvider", "writes zone files", "`dkimctl show-dns`"),
    ],
)
def test_classes_that_cannot_be_used(monkeypatch, class_name, message, hint):
    if class_name == "octodns_x.X":
        monkeypatch.setitem(sys.modules, "octodns", None)
    with pytest.raises(UsageError, match=message) as caught:
        load_class(class_name)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("source", "message"),
    [("import sys\nsys.no_such", "no attribute 'no_such'"), ("def f(:", "invalid syntax"),
     ("raise RuntimeError", "RuntimeError"),
     ("def __getattr__(name): raise OSError('late')", "late")],
)  # fmt: skip
def test_a_module_that_fails_while_it_is_imported(tmp_path, monkeypatch, source, message):
    (tmp_path / "broken_provider_of_tests.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "broken_provider_of_tests", raising=False)
    with pytest.raises(UsageError, match=message) as caught:
        load_class("broken_provider_of_tests.X")
    assert caught.value.message.startswith("cannot import broken_provider_of_tests.X: ")
    assert "update octodns" in caught.value.hint


def test_a_provider_that_lists_no_zones_needs_their_names(failing, monkeypatch):
    target = failing()
    monkeypatch.setattr(YamlProvider, "list_zones", None)
    monkeypatch.delattr(YamlProvider, "list_zones")
    with pytest.raises(UsageError, match="does not list its zones"):
        target.find_zones([D1])
    target.zones = ["example.com"]
    assert target.find_zones([D1]) == {D1: "example.com"}


def test_where_zones_may_not_be_listed_those_are_used_that_are_named(failing, monkeypatch):
    def refuse(provider):
        raise RuntimeError("unauthorized")

    monkeypatch.setattr(YamlProvider, "list_zones", refuse)
    target = failing()
    with pytest.raises(DnsRefused):
        target.find_zones([D1])
    target.zones = ["example.com", "*.test"]
    assert target.find_zones([D1]) == {D1: "example.com"}


def test_a_name_in_a_zone_below_is_delegated(target):
    name = "s1._domainkey.sub.example.com"
    assert target.read("example.com", [name]) == {name: NameState(delegated="sub.example.com")}


def test_zones_in_other_scripts_are_found(target, monkeypatch):
    listed = ["☃.example.", "bücher.example.", "example.com."]
    monkeypatch.setattr(YamlProvider, "list_zones", lambda provider: listed)
    name = "s1._domainkey.xn--bcher-kva.example"
    assert target.find_zones([name, D1]) == {name: "xn--bcher-kva.example", D1: "example.com"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("{}: rate limit exceeded", False), ("zone permission.io: timed out", False),
     ("zone permission.io: no permission", True)],
)  # fmt: skip
def test_words_in_names_are_no_refusal(text, expected):
    name = "s1._DomainKey.tsig.signature.credential.permission.io"
    failure = RuntimeError(text.format(name))
    assert is_refusal(failure, str(failure), ["permission.io", name]) is expected


def test_several_threads_use_one_provider_in_turn(failing, monkeypatch):
    busy, read = threading.Lock(), []

    def populate(provider, zone, target=False, lenient=False):
        read.append(provider)
        assert busy.acquire(blocking=False)
        time.sleep(0.01)
        busy.release()
        return True

    monkeypatch.setattr(FailingProvider, "populate", populate)
    target = failing()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda zone: target.read(f"z{zone}.example", []), range(8)))
    assert len(read) == 8
    assert len(set(map(id, read))) == 1
    target.read("z1.example", [])
    assert read[-1] is not read[0], "many keep what they have read"


def test_a_record_is_written_where_its_alias_leads(target, directory):
    led = change("s1._domainkey.led.example", KEY)._replace(alias_end=D3)
    assert errors(target.apply("example.com", [led])) == {"s1._domainkey.led.example": None}
    assert target.read("example.com", [D3])[D3].values == (KEY,)
