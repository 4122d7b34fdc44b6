"""Put records into DNS through octoDNS, which has a provider for most DNS services."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from inspect import signature
from typing import Any

from dkimctl.client.redaction import Redactor
from dkimctl.dkim import MAX_STRING
from dkimctl.dns.wildcards import AddFirst, Records, find_shadowed
from dkimctl.errors import DkimctlError, DnsRefused, NegativeAnswer, ServiceError, UsageError
from dkimctl.models import Secret
from dkimctl.names import is_glob, parents, parse_zone, zone_finder
from dkimctl.publishing.plan import Access, Change, NameState, changed_error, is_same, outcome_of
from dkimctl.settings.values import values_in
from dkimctl.text import few, install_beside, printable, utf8

_ONE_STRING = MAX_STRING // 2  # characters; each can have a backslash
_ANSWERED = ("CNAME", "A", "AAAA", "MX", "TXT", "HTTPS")  # what a wildcard may have for hosts
_making = threading.Lock()  # boto3 makes no clients in two threads
_MAX_TEXT = 300  # characters of a message
_MAX_READ = 100 * _MAX_TEXT
# What Python raises by itself: the text alone can be as short as the name of a missing key.
_BY_PYTHON = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# Each provider has exceptions of its own; most have one of these words in name or text.
_REFUSAL = (
    r"(?i)unauthori[sz]ed|forbidden|authenticat|authori[sz]ation|access ?denied|not ?authori[sz]ed|"
    r"permission|credential|signature|invalid.{0,20}(key|token)|\bBAD(SIG|KEY|TIME)\b|"
    r"\b(NOTAUTH|REFUSED)\b|tsig|peer didn.t know the key"
)
_NO_CONNECTION = r"(?i)connection ?(\w+ )?(refused|error|aborted|reset)|errno"


class OctodnsTarget:
    """The zones of one provider; `class_name` is its module and class.

    `read_settings`, called at its first use, gives what the class takes, secrets as Secret.
    """

    def __init__(
        self, class_name: str, read_settings: Callable[[], Mapping[str, object]], ttl: int, *,
        zones: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.label = class_name
        self.ttl = ttl
        self.zones = zones
        self._read_settings = cache(read_settings)
        self._lock = threading.Lock()
        self._made: Any = None
        self._failures: Failures  # of what is made
        self._read: set[str] = set()  # zones, by the provider
        self._with_wildcards: dict[str, Any] = {}  # zones as `read` has read them

    def find_zones(self, names: Sequence[str]) -> Mapping[str, str | None]:
        """See Target. Without a list from the provider, zones are those that the config names."""
        find = zone_finder(self._list_zones(names))
        return {name: find(name) for name in names}

    def read(self, zone: str, names: Sequence[str]) -> Mapping[str, NameState]:
        """See Target."""
        with self._provider(zone) as provider:
            contents = self._read_zone(provider, zone, names)
        if any(_name(record).startswith("*.") for record in contents.records):
            self._with_wildcards[zone] = contents
        return _states(contents, zone, names)

    def find_shadowed(self, zone: str, names: Sequence[str]) -> AddFirst:
        """See Target. By what `read` has just read."""
        if (contents := self._with_wildcards.pop(zone, None)) is None:
            return {}
        records = {(_name(record), record._type): record for record in contents.records}
        existing = {above for name, _ in records for above in parents(name)}

        def records_at(name: str) -> list[Records]:
            if name not in existing:
                name = f"*.{next(above for above in parents(name) if above in existing)}"
            there = filter(None, (records.get((name, rdtype)) for rdtype in _ANSWERED))
            return [Records(each._type, each.ttl, tuple(sorted(_rdatas(each)))) for each in there]

        zone_of = dict.fromkeys(names, zone.lower())
        return find_shadowed(zone_of, lambda zones: {name: records_at(name) for name in zones})

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Change]:
        """See Target. octoDNS has no prerequisites: what is there is compared just before."""
        fitting: list[Change] = []
        for change in changes:
            value = change.value or ""
            if value.isascii() and value.isprintable() and not {'"', "\\"}.intersection(value):
                fitting.append(change)
                continue
            # DKIM does not use what octoDNS cannot hold.
            what = f"octoDNS has no form for the value at {printable(change.name)}"
            hint = "publish it by hand: `dkimctl show-dns` has it"
            yield change.failed(NegativeAnswer(what, hint=hint))
        if not fitting:
            return
        states, error = self._attempt(zone, fitting)
        if error is not None and not states:
            yield from (change.failed(error) for change in fitting)
            return
        wanted = [item for item in fitting if is_same(states[item.name], item.before)]
        changed = [item for item in fitting if not is_same(states[item.name], item.before)]
        yield from (change.failed(changed_error(change)) for change in changed)
        if error is None and not any(map(_may_stay, wanted)):
            yield from (change.made() for change in wanted)
            return
        # Look again, after the provider has failed, or removed what it may not have found.
        names = [change.name for change in wanted]
        try:
            states = self.read(zone, names)
            same = [item for item in wanted if is_same(states[item.name], item.before)]
            if left := list(filter(_may_stay, same)):
                for rewrites in (True, False):
                    _, failure = self._attempt(zone, left, rewrites=rewrites)
                    if failure is not None:
                        raise failure
                states = self.read(zone, names)
        except DkimctlError as unread:
            yield from (change.failed(error or unread) for change in wanted)
            return
        for change in wanted:
            what = f"the removal of {printable(change.name)}, but the record is still there"
            ignored = ServiceError(f"{self.label} accepted {what}", hint="remove it by hand")
            yield outcome_of(change, states[change.name], error or ignored)

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        """See Target. Only a change would tell whether it may write."""
        self.read(zone, names)
        return Access(True, None, "only a change shows whether the provider allows it")

    def _attempt(
        self, zone: str, changes: Sequence[Change], *, rewrites: bool = False
    ) -> tuple[Mapping[str, NameState], DkimctlError | None]:
        """Make the changes of names that are as they were; what there is before, and the error."""
        names, states = [change.name for change in changes], {}
        try:
            with self._provider(zone) as provider:
                existing = self._read_zone(provider, zone, names)
                states = _states(existing, zone, names)
                if same := [item for item in changes if is_same(states[item.name], item.before)]:
                    self._failures.trying(
                        f"change the zone {printable(zone)}",
                        lambda: provider.apply(make_plan(provider, existing, same, rewrites)),
                        [zone, *names],
                    )
        except DkimctlError as error:
            return states, error
        return states, None

    def _list_zones(self, names: Sequence[str]) -> Sequence[str]:
        named = [zone for zone in self.zones if not is_glob(zone)]
        with self._provider() as provider:
            try:
                if hasattr(provider, "list_zones"):
                    listed = self._failures.trying(
                        "list its zones", lambda: list(provider.list_zones()), [*named, *names]
                    )
                    return list(map(_in_dns, listed))
            except DnsRefused:  # credentials may be for the named zones only
                if not named:
                    raise
        if not named:
            hint = "name each in `zones` of its entry in `dns` in the config file, no globs"
            raise UsageError(f"{self.label} does not list its zones", hint=hint)
        return named

    def _read_zone(self, provider: Any, zone: str, names: Sequence[str]) -> Any:
        """All records of the zone, as an octoDNS Zone."""
        from octodns.zone import Zone

        contents = Zone(f"{zone.lower()}.", [])
        populate = partial(provider.populate, contents, target=True, lenient=True)
        exists = self._failures.trying(f"read the zone {printable(zone)}", populate, [zone, *names])
        # Some providers return nothing.
        if not (contents.records if exists is None else exists):
            what = f"{self.label} has no zone {printable(zone)}, or does not list its records"
            hint = "correct `zones` or `settings` of `dns` in the config file"
            raise NegativeAnswer(what, hint=hint)
        return contents

    @contextmanager
    def _provider(self, zone: str = "") -> Iterator[Any]:
        """The provider; one that has not read this zone before: many keep what they have read.

        One thread uses it at a time: octoDNS itself has one provider that works on one zone at a
        time, providers have no locks, and services limit requests. Making one for each zone would
        cost requests, such as for the list of zones.
        """

        def make() -> Any:
            """Secrets are revealed here, and in no local variable."""
            with _making:
                return provider_class("dkimctl", **convert(settings, _revealed))

        with self._lock:
            if self._made is None or zone in self._read:
                settings = self._read_settings()
                self._failures = Failures(self.label, settings)
                provider_class = load_class(self.label)
                self._made = self._failures.trying("start", make, is_opening=True)
                self._read.clear()
            if zone:
                self._read.add(zone)
            yield self._made


def _may_stay(change: Change) -> bool:
    """Whether the provider may not find the record that it is to remove.

    octodns-bind, octodns-route53 and others remove only what is split into strings where octoDNS
    splits it, and that is not where others do: it counts backslashes.
    """
    return change.value is None and any(len(value) > _ONE_STRING for value in change.before.values)


def load_class(class_name: str) -> Any:
    """The class of this name. Raises UsageError, with the command that installs it."""
    # Keep what libraries warn of off standard error: with `warnings`, or by a logger. Without any
    # handler, Python writes warnings of every logger there.
    logging.captureWarnings(True)
    logging.basicConfig(handlers=[logging.NullHandler()])
    name, hint = printable(class_name), "check `class` of `dns` in the config file"
    module_name, _, attribute = class_name.rpartition(".")
    try:
        import_module("octodns")
        provider: Any = getattr(import_module(module_name), attribute, None)
    except ModuleNotFoundError as error:
        if error.name == "octodns":
            hint = install_beside("octodns")
        elif error.name == (package := class_name.partition(".")[0]):
            hint = install_beside(package.replace("_", "-"))
        reason = f"there is no module {printable(str(error.name))}"
        raise UsageError(f"cannot import {name}: {reason}", hint=hint) from None
    except Exception as error:  # noqa: BLE001 - a module can raise anything while it is imported
        reason = _short_line(str(error)) or type(error).__name__
        hint = "update octodns and the package of the provider"
        raise UsageError(f"cannot import {name}: {reason}", hint=hint) from None
    methods = ("populate", "plan", "apply")
    if not (callable(provider) and all(hasattr(provider, method) for method in methods)):
        raise UsageError(f"{name} is not an octoDNS provider that can change DNS", hint=hint)
    if "directory" in signature(provider).parameters:
        # octoDNS writes zone files in place: a run that is killed leaves them cut, or empty.
        hint = "name the provider that serves the zone; for files: `dkimctl show-dns`"
        raise UsageError(f"{name} writes zone files, and not DNS", hint=hint)
    return provider


def convert(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """The same mappings and lists, with `leaf` of each other value in them."""
    if isinstance(value, Mapping):
        return {key: convert(inner, leaf) for key, inner in value.items()}
    return [convert(item, leaf) for item in value] if isinstance(value, list) else leaf(value)


def _revealed(value: Any) -> Any:
    return value.reveal() if isinstance(value, Secret) else value


def _in_dns(zone: object) -> str:
    """Its name in DNS, without trailing dot: some providers list it in another script."""
    name = str(zone).rstrip(".")
    try:
        return parse_zone(name)
    except UsageError:  # a name such as one with emoji stays as it is: no name of ours is in it
        return name


def _rdatas(record: Any) -> Sequence[str]:
    """The data of a record as a master file has them; `rrs` is for versions before 1.22."""
    data: Sequence[str] = record.to_rrset().rdatas if hasattr(record, "to_rrset") else record.rrs[3]
    return data


def _states(contents: Any, zone: str, names: Sequence[str]) -> dict[str, NameState]:
    """What is at each of the names."""
    records = {(_name(record), record._type): record for record in contents.records}

    def state(name: str) -> NameState:
        cuts = [parent for parent in parents(name) if (parent, "NS") in records]
        below = [cut for cut in cuts if cut.endswith(f".{zone.lower()}")]
        if below:
            return NameState(delegated=below[-1])
        if alias := records.get((name.lower(), "CNAME")):
            return NameState(alias=str(alias.value).rstrip("."))
        txt = records.get((name.lower(), "TXT"))
        return NameState(_values(txt), txt.ttl if txt else None)

    return {name: state(name) for name in names}


def make_plan(provider: Any, existing: Any, changes: Sequence[Change], rewrites: bool) -> Any:
    """The plan for these changes to the zone `existing`, which is left as it is.

    Providers see only our names when they plan: by exact name and by type, on both sides. The plan
    that they apply has the whole zone beside our changes, since some write all of it. Thresholds of
    octoDNS are for its own command. Raises DkimctlError.

    `rewrites`: what is at our names is only written once more, split into strings by octoDNS.
    """
    from octodns.processor.filter import NameAllowlistFilter, TypeAllowlistFilter
    from octodns.provider.plan import Plan
    from octodns.record import Record, Update

    if getattr(provider, "apply_disabled", False):
        hint = "remove it from `settings` of `dns` in the config file"
        raise NegativeAnswer("`apply_disabled` is set for the provider", hint=hint)
    wanted = {change.name.lower(): change for change in changes}
    texts = (record for record in existing.records if record._type == "TXT")
    ours = [record for record in texts if _name(record) in wanted]
    if rewrites:
        return Plan(existing, existing, [Update(record, record) for record in ours], exists=True)
    desired = existing.copy()  # the zone after the changes
    for record in ours:
        desired.remove_record(record)
    for name, change in wanted.items():
        if change.value is not None:
            data = {"type": "TXT", "ttl": change.ttl, "value": change.value.replace(";", "\\;")}
            hostname = existing.hostname_from_fqdn(f"{name}.")
            desired.add_record(Record.new(desired, hostname, data, lenient=True), lenient=True)
    names = [existing.hostname_from_fqdn(f"{name}.") for name in wanted]
    filters = [NameAllowlistFilter("names", names), TypeAllowlistFilter("types", ["TXT"])]
    visible = desired.copy()
    for item in filters:
        visible = item.process_source_zone(visible, [])
    plan = provider.plan(visible, processors=filters)
    planned = list(plan.changes) if plan else []
    _require_ours(planned, wanted)
    return Plan(existing, desired, planned, exists=True)


def _require_ours(planned: Sequence[Any], wanted: Mapping[str, Change]) -> None:
    """Raise unless each change is planned once as it is wanted, and nothing else is."""
    by_hand = "nothing was changed; publish by hand: see `dkimctl show-dns`"
    seen = set()
    for item in planned:
        name = _name(item.record)
        change = wanted.get(name)
        wanted_values = () if change is None or change.value is None else (change.value,)
        is_ours = change is not None and item.record._type == "TXT" and name not in seen
        if change is None or not is_ours or _values(item.new) != wanted_values:
            would = f"change {item.record._type} at {printable(name)}, which is not planned"
            raise ServiceError(f"the provider would {would}", hint=by_hand)
        seen.add(name)
        if sorted(_values(item.existing)) != sorted(change.before.values):
            raise changed_error(change)
    if missing := sorted(wanted.keys() - seen):
        what = f"the provider plans no change of TXT at {printable(few(missing))}"
        raise ServiceError(what, hint="nothing was changed; run the same command again")


def _values(record: Any) -> tuple[str, ...]:
    """The values of a TXT record, or none; octoDNS escapes semicolons."""
    return tuple(str(value).replace("\\;", ";") for value in record.values) if record else ()


def _name(record: Any) -> str:
    return str(record.fqdn).rstrip(".").lower()


class Failures:
    """What a provider raises, as errors of ours, without the secrets in its `settings`."""

    def __init__(self, label: str, settings: Mapping[str, object]) -> None:
        self._label = label
        self._redactor = Redactor()
        for secret in values_in(settings):
            # Some providers remove spaces and line breaks around it.
            if isinstance(secret, Secret) and (text := secret.reveal().strip()):
                self._redactor.add(secret)
                self._redactor.add(Secret(text))

    def trying(
        self, doing: str, work: Callable[[], Any], names: Collection[str] = (), *,
        is_opening: bool = False,
    ) -> Any:  # fmt: skip
        """Let a provider work on `names`, or open it. Raises DkimctlError in place of its own."""
        kind: type[DkimctlError] = ServiceError
        try:
            return work()
        except DkimctlError:
            raise
        except Exception as failure:  # noqa: BLE001 - each provider raises its own
            shown, settings = self._shown(failure), "`settings` of `dns` in the config file"
            message = f"{self._label} cannot {doing}: {shown}"
            hint = f"check the provider, and its {settings}; then run the same command again"
            if is_opening and isinstance(failure, (TypeError, ValueError)):
                kind, hint = UsageError, f"check {settings}: the class documents what it takes"
                message = f"cannot use {self._label} with these settings: {shown}"
            elif is_refusal(failure, _text_of(failure), names):
                kind, allow = DnsRefused, "that they allow to read and change the zone"
                hint = f"check the credentials in {settings}, and {allow}"
        # Raised here so that the failure, which can quote a secret, is not its context.
        raise kind(message, hint=hint)

    def _shown(self, failure: Exception) -> str:
        """What it says, without secrets; its kind alone if it contains a short one, or is empty."""
        text = _text_of(failure)
        if not text or self._redactor.has_short_secret(text):
            return type(failure).__name__
        return _short_line(self._redactor.redact(utf8(text)).decode("utf-8", "replace"))


def _short_line(text: str) -> str:
    """The beginning of `text` on one line, safe for a terminal."""
    line = " ".join(text.split())
    return printable(line[:_MAX_TEXT] + "…" if len(line) > _MAX_TEXT else line)


def _text_of(failure: Exception) -> str:
    """What a failure says; it can quote a secret."""
    # The text of this one quotes a character of what has no form, such as a secret in a header.
    text = failure.reason if isinstance(failure, UnicodeEncodeError) else str(failure)
    if isinstance(failure, _BY_PYTHON):
        text = f"{type(failure).__name__}: {text}"
    status = http_status(failure)
    if status is not None and str(status) not in text:
        text = f"{text} (HTTP {status})"
    # The JSON that came with an error of requests, whose text has the status alone.
    content = getattr(getattr(failure, "response", None), "content", None)
    if isinstance(content, bytes) and content.startswith(b"{"):
        text = f"{text}: {content[:_MAX_READ].decode('utf-8', 'replace')}"
    return text[:_MAX_READ]


def is_refusal(failure: Exception, text: str, names: Collection[str]) -> bool:
    """Whether `failure` is one, by its text, status and type; `names` in the text say nothing."""
    # A name can have any word: without it, and those above it, the longest first.
    above = {parent for name in names for parent in parents(name) if "." in parent}
    for known in sorted(above, key=len, reverse=True):
        text = text.lower().replace(known, "")
    if (status := http_status(failure)) is not None:
        return status in (401, 403) or (status < 500 and bool(re.search(_REFUSAL, text)))
    text = f"{type(failure).__name__} {text}"
    return not re.search(_NO_CONNECTION, text) and bool(re.search(_REFUSAL, text))


def http_status(failure: Exception) -> int | None:
    """The status in an exception of requests or botocore."""
    response = getattr(failure, "response", None)
    status = getattr(response, "status_code", None)
    if isinstance(response, Mapping):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status if isinstance(status, int) else None
