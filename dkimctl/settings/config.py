"""The config file: what it may say, and how it is read, strictly, with all its problems at once."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from dkimctl import names
from dkimctl.addresses import parse_server
from dkimctl.errors import InputError, UsageError
from dkimctl.files import path_fault, refuse
from dkimctl.input_files import MAX_CONFIG_BYTES, read_bytes
from dkimctl.settings import values
from dkimctl.settings.rotation import MAX_COUNT, Policies, Pool, RotationSettings
from dkimctl.specs.entries import read_defaults
from dkimctl.strict_yaml import Document, Node
from dkimctl.text import parse_duration, quoted

DEFAULT_TTL = 3600  # seconds
_MIN_GRACE = timedelta(days=5)  # for which mail servers try to deliver (RFC 5321 section 4.5.4.1)

# Patterns, compiled when they are used: few commands need them.
_SECRET_KEY = "(?i)secret|passw|token|api_?key|private_?key"  # noqa: S105
_GLOB = r"[a-z0-9_*?[\]!-]+(?:\.[a-z0-9_*?[\]!-]+)*"
# Keys of a provider's settings such as api_key, key_secret and token; but not key_name, token_url
# or private_key_file.
_SECRET_SETTING = r"(?i)secret|passw|passphrase|token|apikey|credential|(?:\A|[_-])(?:key|pass)\Z"  # noqa: S105
_NO_SECRET = r"(?i)[_-](?:file|path|url|endpoint|name|type|algorithm|ttl|timeout)\Z"  # noqa: S105
_PASSWORD_IN_URL = r"://[^/?#]*@"  # noqa: S105
_PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY"  # RFC 7468
_INTEGER = r"-?(?:0|[1-9][0-9]{0,17})"
_FRACTION = rf"{_INTEGER}\.[0-9]{{1,18}}"
_BOOLEANS = {"true": True, "false": False}

_NO_SECRETS = (
    "remove it: `dkimctl login` stores the client secret, key_file names the file of a TSIG key, "
    "and `settings` and `webhook` take env/NAME or keyring/NAME"
)
_TARGET = "'{selector}.{domain}.dkim.example.com'"  # an example
# What a pool needs, with examples.
_OF_POOL = {
    "domains": "['*.example.com']", "selectors": "a{n}", "count": "24",
    "target or ns": f"target: {_TARGET}",
}  # fmt: skip
_COMMAND = "write the program and its arguments, such as [/usr/local/bin/page, --json]"
# By provider: the key that it needs with an example, and the keys that it alone has.
_PROVIDERS = {
    "rfc2136": ("server", "192.0.2.1", ("server", "key_file")),
    "octodns": ("class", "octodns_route53.Route53Provider", ("class", "settings")),
}


class DnsTarget(NamedTuple):
    """How to change some zones: an entry of `dns`."""

    #: `rfc2136`, with `server` and `key_file`, or `octodns`, with `class_name` and `settings`.
    provider: str
    #: Names or globs, in lower case and without trailing dot; none: all zones that the target has.
    zones: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()  # those that may use it; none: all but the sandbox
    ttl: int = DEFAULT_TTL
    server: str = ""
    key_file: str = ""
    class_name: str = ""
    settings: Mapping[str, object] = {}  # in which `env/NAME` and `keyring/NAME` stand for secrets

    def is_for(self, profile: str) -> bool:
        """Whether the profile may use it."""
        return profile in self.profiles if self.profiles else profile != values.SANDBOX

    def may_have(self, domain: str) -> bool:
        """Whether a zone of it may hold the keys of a domain, as far as `zones` tells."""
        above = list(names.parents(f"_domainkey.{domain.lower()}"))
        return not self.zones or any(fnmatch.filter(above, zone.lower()) for zone in self.zones)

    def shares_profile(self, other: DnsTarget) -> bool:
        """Whether there is a profile that may use both."""
        if self.profiles and other.profiles:
            return not set(self.profiles).isdisjoint(other.profiles)
        return any(name != values.SANDBOX for name in self.profiles or other.profiles or ("",))


class NoticeSettings(NamedTuple):
    """Who is notified of problems: `notify`."""

    command: tuple[str, ...] = ()  # program and arguments
    webhook: str = ""  # a URL or, since such URLs often contain a secret, a reference as text
    #: A problem is looked at again after this time, before an alarm.
    recheck: timedelta = timedelta(minutes=1)


class Config(NamedTuple):
    """A valid config file. Each profile has only the keys that the file sets."""

    default_profile: str | None = None
    profiles: Mapping[str, Mapping[str, Any]] = {}
    dns: tuple[DnsTarget, ...] = ()
    rotation: Policies = Policies()
    notify: NoticeSettings = NoticeSettings()
    delegation: tuple[Pool, ...] = ()

    @property
    def pool_of(self) -> Callable[[str], Pool | None]:
        """What gives the pool of a signing domain, if it is delegated."""
        return self.rotation.pool_of

    def secret_variables(self) -> set[str]:
        """The environment variables that it names as secrets (env/NAME)."""
        places = [self.notify.webhook, *(target.settings for target in self.dns)]
        texts = [str(text) for text in values.values_in(places) if values.is_reference(str(text))]
        return {text.removeprefix("env/") for text in texts if text.startswith("env/")}


def load_config(path: Path, *, required: bool) -> Config:
    """Read the config file; a missing one is an empty Config unless it is `required`.

    A file that is `required` was named by the user, and may be anyone's; any other must be safe
    from other users. Raises UsageError, and InputError with all problems of the file.
    """
    if not required:
        with suppress(OSError):  # reading it will report the reason
            if not path.exists():
                return Config()
            # It says where secrets are sent.
            hint = "name the file in --config or DKIMCTL_CONFIG if you trust it"
            refuse(path_fault(path), UsageError, hint=hint)
    try:
        with Document(read_bytes(str(path), largest=MAX_CONFIG_BYTES), str(path)) as document:
            root = document.root()
            return Config() if root is None else _Reader(document, path.parent).read(root)
    except InputError as error:
        # The frames of the traceback hold the text, which may contain a secret.
        raise error.with_traceback(None) from None


class _Reader:
    """Reads the sections of a document, which collects problems; files are below `directory`."""

    def __init__(self, document: Document, directory: Path) -> None:
        self._document = document
        self._directory = directory

    def read(self, root: Node) -> Config:
        checks = {"default_profile": values.profile_name}
        sections = {
            "profiles": self._profiles,
            "dns": self._dns,
            "rotation": self._rotation,
            "delegation": self._delegation,
            "notify": lambda node: NoticeSettings(
                **self._fields(node, "notify", _NOTIFY, {"command": self._command})[0]
            ),
        }
        config = Config(**self._fields(root, "the config file", checks, sections)[0])
        return config._replace(rotation=Policies(config.rotation.entries, config.delegation))

    def _profiles(self, node: Node) -> dict[str, dict[str, Any]]:
        nested = {"defaults": lambda value: read_defaults(self._document, value)}
        profiles = {}
        for key, value in self._document.pairs(node, "profiles"):
            name = self._value(key, "profiles", values.profile_name)
            if name is None:
                continue
            profiles[name], keys = self._fields(value, f"the profile {name}", values.CHECKS, nested)
            for fixed in {*keys} & {*values.SANDBOX_FIXED} if name == values.SANDBOX else ():
                hint = "remove it, or use another profile name"
                self._document.problem(keys[fixed], f"{fixed} of the sandbox is fixed", hint)
        return profiles

    def _dns(self, node: Node) -> tuple[DnsTarget, ...]:
        targets = []
        places: dict[str, list[tuple[int, DnsTarget]]] = {}  # of each zone, with the line
        for item in self._document.items(node, "dns"):
            target = self._dns_target(item)
            for zone in target.zones:
                others = places.setdefault(zone, [])
                # Each would take all records of the zone.
                if lines := [line for line, other in others if other.shares_profile(target)]:
                    message = f"the zone {quoted(zone)} is already in the entry on line {lines[0]}"
                    hint = "remove one of the two, or let other `profiles` use each of them"
                    self._document.problem(item, message, hint)
                others.append((item.start_mark.line + 1, target))
            targets.append(target)
        return tuple(targets)

    def _dns_target(self, node: Node) -> DnsTarget:
        document, what = self._document, "an entry of dns"
        nested = {"settings": lambda settings: self._settings(settings, "settings")}
        fields, keys = self._fields(node, what, _DNS_TARGET, nested)
        provider = fields.get("provider", "")
        required, example, _ = _PROVIDERS.get(provider, ("provider", "rfc2136", ()))
        if document.is_mapping(node) and required not in keys:
            hint = f"add it, such as '{required}: {example}'"
            document.problem(node, f"{what} needs {required}", hint)
        for other, (_, _, own_keys) in _PROVIDERS.items():
            for name in {*own_keys} & {*keys} if provider not in ("", other) else ():
                message = f"{name} has no effect with the provider {provider}"
                document.problem(keys[name], message, f"remove it; it is for {other}")
        if key_file := fields.get("key_file"):
            fields["key_file"] = str(self._directory / key_file)
        class_name = fields.pop("class", "")
        return DnsTarget(**{"provider": "", **fields, "class_name": class_name})

    def _settings(self, node: Node, what: str, *, is_secret: bool = False) -> dict[str, object]:
        """Any values, but no secret written out. `is_secret`: a key above is that of a secret."""

        def read(node: Node, what: str, *, is_secret: bool) -> object:
            if self._document.is_mapping(node):
                return self._settings(node, what, is_secret=is_secret)
            if self._document.is_list(node):
                items = self._document.items(node, what)
                return [read(item, what, is_secret=is_secret) for item in items]
            return self._document.value(node, what, _secret_reference if is_secret else _setting)

        settings = {}
        for key, value in self._document.pairs(node, what):
            name = key.value[-100:]  # characters, more than any has
            names_secret = re.search(_SECRET_SETTING, name) and not re.search(_NO_SECRET, name)
            is_secret_value = is_secret or bool(names_secret)
            settings[key.value] = read(value, quoted(key.value), is_secret=is_secret_value)
        return settings

    def _rotation(self, node: Node) -> Policies:
        if not self._document.is_list(node):
            return Policies([self._policy(node, "rotation")])
        entries = list[RotationSettings]()
        for item in self._document.items(node, "rotation"):
            entries.append(self._policy(item, "an entry of rotation"))
            if len(entries) > 1 and entries[-2].domains == RotationSettings().domains:
                hint = "write the entry without `domains` last: the first that has a domain counts"
                self._document.problem(item, "the entry before it has all domains", hint)
        return Policies(entries)

    def _policy(self, node: Node, what: str) -> RotationSettings:
        fields, keys = self._fields(node, what, _ROTATION)
        freeze = list[tuple[datetime, datetime]]()
        for begin, end in sorted(fields.pop("freeze", ())):
            if freeze and begin <= freeze[-1][1]:  # they are one
                begin, end = freeze[-1][0], max(end, freeze.pop()[1])  # noqa: PLW2901
            freeze.append((begin, end))
        settings = RotationSettings(**fields, freeze=tuple(freeze))
        if settings.lead >= settings.max_age:
            hint = "write a lead of some days, such as 7d, and a max_age of some months, such as "
            place = keys.get("lead") or keys["max_age"]
            self._document.problem(place, "lead is not shorter than max_age", f"{hint}180d")
        return settings

    def _delegation(self, node: Node) -> tuple[Pool, ...]:
        document, what = self._document, "an entry of delegation"
        pools, owners = list[Pool](), dict[str, str]()  # the domain of each target
        for item in document.items(node, "delegation"):
            fields, keys = self._fields(item, what, _POOL)
            for name, example in _OF_POOL.items() if document.is_mapping(item) else ():
                if len(keys.keys() & {*name.split(" or ")}) != 1:
                    hint = f"write one, such as {example}"
                    document.problem(item, f"{what} needs {name}", hint)
            if len(fields) != len(_OF_POOL) or not all(fields.values()):
                continue  # it has problems
            pool = Pool(**fields)
            pools.append(pool)
            for domain in pool.domains if pool.target else ():
                target = pool.target_of(domain, "{selector}")
                is_shared = names.is_glob(domain) and "{domain}" not in pool.target
                if is_shared or owners.setdefault(target, domain) != domain:
                    hint = "their keys would overwrite each other: write {domain} into it, as in "
                    message = f"{domain} and other domains have the target {target}"
                    document.problem(item, message, hint + _TARGET)
        return tuple(pools)

    def _command(self, node: Node) -> tuple[str, ...]:
        if self._document.is_list(node):
            command = self._list(node, "command", _word)
        else:
            command = self._value(node, "command", _words) or ()
        if command and not command[0]:
            self._document.problem(node, "command names no program", _COMMAND)
        return command

    def _fields(
        self, node: Node, what: str, checks: Mapping[str, values.Check | list[values.Check]],
        nested: Mapping[str, Callable[[Node], object]] = {},
    ) -> tuple[dict[str, Any], dict[str, Node]]:  # fmt: skip
        """The values of a mapping that are not None, and its keys, both by the keys' names.

        `checks` convert the text of single values or, in brackets, of each item of a list;
        `nested` are for other values.
        """
        fields: dict[str, Any] = {}
        keys: dict[str, Node] = {}
        for key, value in self._document.pairs(node, what):
            name = key.value
            keys[name] = key
            if name in nested:
                fields[name] = nested[name](value)
            elif isinstance(check := checks.get(name), list):
                fields[name] = self._list(value, name, *check)
            elif check is not None:
                fields[name] = self._value(value, name, check)
            elif re.search(_SECRET_KEY, name):
                message = f"{quoted(name)}: secrets are not allowed in this file"
                self._document.problem(key, message, _NO_SECRETS)
            else:
                self._document.unknown_key(key, what, (*checks, *nested))
        return {name: value for name, value in fields.items() if value is not None}, keys

    def _list(self, node: Node, what: str, check: values.Check) -> tuple[Any, ...]:
        items = [self._value(item, what, check) for item in self._document.items(node, what)]
        if not items and self._document.is_list(node):
            self._document.problem(node, f"{what} is empty", f"add an item, or remove {what}")
        return tuple(item for item in items if item is not None)

    def _value(self, node: Node, what: str, check: values.Check) -> Any:
        return self._document.value(node, what, lambda text, _is_plain: check(text))


# The checks of values: they convert text, or raise UsageError.

check_class = values.matching(
    r"(?a)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+",
    "this is not the name of a Python class",
    "write module and class, such as octodns_route53.Route53Provider",
)
_key_len = values.matching("1024|2048", "not 1024 or 2048", "write 2048 or 1024")
_word = values.matching(
    "[^\0\ud800-\udfff]*", "contains a character that no argument can have", "remove it"
)


def _zone(text: str) -> str:
    """The name of a zone, or a glob, in lower case, as A-labels, without trailing dot."""
    if "://" in text or not names.is_glob(text):
        return names.parse_zone(text)
    glob = text.lower().removesuffix(".")
    if len(glob) > 253 or not re.fullmatch(_GLOB, glob):  # characters
        hint = "write it as in '*.example.com'; internationalized labels as A-labels (xn--...)"
        raise UsageError(f"{quoted(text)} is not a glob of zone names", hint=hint)
    return glob


def _domain(text: str) -> str:
    """A signing domain, or a glob of such, in lower case, as A-labels, without trailing dot."""
    return names.parse_domain(text) if "://" in text or not names.is_glob(text) else _zone(text)


def _pool_selectors(text: str) -> str:
    if "{n}" not in text:
        raise UsageError("{n} is missing", hint="write it where the number belongs, as in a{n}")
    names.parse_selector(text.replace("{n}", str(MAX_COUNT)))
    return text.lower()


def _pool_target(text: str) -> str:
    target = text.lower().removesuffix(".")
    labels = target.split(".")
    fixed = [label for label in labels if label not in ("{selector}", "{domain}")]
    if "{selector}" not in labels or not names.is_name(".".join(fixed)):
        hint = f"write it as in {_TARGET}: {{selector}} and {{domain}} are whole labels"
        raise UsageError(f"{quoted(text)} is not a template of DNS names", hint=hint)
    if target == "{selector}._domainkey.{domain}":
        raise UsageError("the CNAME would lead to itself", hint=f"name a zone of yours: {_TARGET}")
    return target


def _key_file(text: str) -> str:
    if not text or "\0" in text:
        raise UsageError("the file name is empty or invalid", hint="name a TSIG key file")
    return values.file_path(text)


def _secret_reference(text: str, _is_plain: bool) -> str:
    if not values.is_reference(text):
        raise UsageError("secrets are not allowed in this file", hint=values.REFERENCE_HINT)
    return text


def _setting(text: str, is_plain: bool) -> object:
    """Plain numbers, `true` and `false` are such; everything else is text."""
    for pattern, what in ((_PRIVATE_KEY, "private key"), (_PASSWORD_IN_URL, "URL with a password")):
        if re.search(pattern, text):
            raise UsageError(f"a {what} is not allowed in this file", hint=values.REFERENCE_HINT)
    if values.is_reference(text) or not is_plain:
        return text
    if re.fullmatch(_INTEGER, text):
        return int(text)
    return float(text) if re.fullmatch(_FRACTION, text) else _BOOLEANS.get(text, text)


def _days(text: str) -> timedelta:
    # Elsewhere, these are seconds.
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) and text.strip("0."):
        raise UsageError("a number without a unit", hint=f"write {text}d, if you mean days")
    return timedelta(seconds=parse_duration(text))


def _grace(text: str) -> timedelta:
    grace = _days(text)
    if grace < _MIN_GRACE:
        hint = "write 5d or more; 14d also leaves time to notice that signing has not moved"
        raise UsageError("shorter than 5 days; signed mail may be on its way that long", hint=hint)
    return grace


def _selectors(text: str) -> str:
    names.selector_template(text, datetime.now(UTC), option="the template")
    return text


def _freeze(text: str) -> tuple[datetime, datetime]:
    """The begin of the first day and the end of the last (UTC), which are separated by a slash."""
    first, _, last = text.partition("/")
    with suppress(ValueError):
        begin, end = (datetime.fromisoformat(f"{day}T00:00+00:00") for day in (first, last))
        if begin <= end and begin.year >= 2000 and end.year < 2100:
            return begin, end + timedelta(days=1)
    hint = "write the first and the last day, such as 2026-12-15/2027-01-10"
    raise UsageError(f"{quoted(text)} is not a range of days", hint=hint)


def webhook_url(text: str) -> str:
    """A URL like that of the service, but perhaps with a query.

    As it is written, but for the case of the scheme: some receivers tell paths apart that are
    equivalent. Raises UsageError, which does not quote the text.
    """
    url, _, query = text.partition("?")
    values.service_url(url)
    if not re.fullmatch("[!-~]*", query) or "#" in query:
        hint = "remove the fragment; write %20 for a space"
        raise UsageError("the URL has an invalid query", hint=hint)
    scheme, separator, rest = text.partition("://")
    return scheme.lower() + separator + rest


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(_word(text))) or ("",)
    except ValueError:
        raise UsageError("a quotation mark is not closed", hint=_COMMAND) from None


# What sections take: by key, the check of a value or, in brackets, of each item of a list.
_DNS_TARGET: Mapping[str, values.Check | list[values.Check]] = {
    "provider": values.matching(
        "rfc2136|octodns",
        "unknown provider",
        "write rfc2136, or octodns with the class of the provider",
    ),
    "zones": [_zone],
    "profiles": [values.profile_name],
    "ttl": values.integer(1, 2**31 - 1),  # RFC 2181, section 8
    "server": lambda text: str(parse_server(text)),
    "key_file": _key_file,
    "class": check_class,
}
_ROTATION: Mapping[str, values.Check | list[values.Check]] = {
    "domains": [_domain],
    "max_age": _days,
    "lead": _days,
    "grace": _grace,
    "limit": values.integer(1, 1_000_000),  # more than anyone has domains
    "key_len": lambda text: int(_key_len(text)),
    "selectors": _selectors,
    "freeze": [_freeze],
    "owner": values.matching(
        r"[^\0-\x1f\x7f-\x9f\ud800-\udfff]{1,200}",
        "the text is empty, longer than 200 characters, or contains a control character",
        "write a name, such as 'team mail'",
    ),
}
_POOL: Mapping[str, values.Check | list[values.Check]] = {
    "domains": [_domain],
    "selectors": _pool_selectors,
    "count": values.integer(1, MAX_COUNT),
    "target": _pool_target,
    "ns": [names.parse_domain],
}
_NOTIFY = {
    "webhook": lambda text: text if values.is_reference(text) else webhook_url(text),
    "recheck": lambda text: timedelta(seconds=values.short_duration(text)),
}
