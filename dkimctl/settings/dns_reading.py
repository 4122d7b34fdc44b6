"""Reads `dns` of the config file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.errors import UsageError
from dkimctl.settings.dns_targets import DnsTarget
from dkimctl.settings.provider_settings import read_provider_settings
from dkimctl.settings.reading import on_text, read_fields, read_list, scalar_readers
from dkimctl.settings.values import file_path, integer, profile_name
from dkimctl.text.addresses import parse_server
from dkimctl.text.dns_names import is_glob
from dkimctl.text.escaping import quoted

if TYPE_CHECKING:
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.nodes import Node, Scalar

    ParseZone = Callable[[str], str]

_MAX_TTL = 2**31 - 1  # RFC 2181, section 8
_MAX_NAME = 253  # characters
_GLOB = r"[a-z0-9_*?[\]!-]+(?:\.[a-z0-9_*?[\]!-]+)*"
_CLASS = r"(?a)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+"

# By provider: the key that it needs, and the others that it alone has.
_REQUIRED = {"rfc2136": "server", "octodns": "class"}
_OWN_KEYS = {"rfc2136": ("server", "key_file"), "octodns": ("class", "settings")}
_EXAMPLES = {
    "server": "add its address, such as 'server: 192.0.2.1'",
    "class": "add the class of the octoDNS provider, such as "
    "'class: octodns_route53.Route53Provider'",
}
_ALTERNATIVES = (
    "remove it: rfc2136 has a key_file; in settings of octodns, write env/NAME or keyring/NAME"
)


def read_dns_targets(
    document: Document, node: Node, *, directory: Path, parse_zone: ParseZone
) -> tuple[DnsTarget, ...]:
    """Read `dns`, and report its problems. Key files are relative to `directory`.

    `parse_zone` checks the name of a zone, and returns it as A-labels.
    """
    readers = _readers(document, directory, parse_zone)
    targets = []
    places: dict[str, list[tuple[Node, DnsTarget]]] = {}
    for item in document.items(node, "dns"):
        target = _read_target(document, item, readers)
        for zone in target.zones:
            _refuse_repeated(document, zone, (item, target), places.setdefault(zone, []))
        targets.append(target)
    return tuple(targets)


def _read_target(
    document: Document, node: Node, readers: Mapping[str, Callable[[Node], object]]
) -> DnsTarget:
    what = "an entry of dns"
    values, keys = read_fields(document, node, what, readers, secret_hint=_ALTERNATIVES)
    if document.is_mapping(node) and "provider" not in keys:
        hint = "add 'provider: rfc2136', or 'provider: octodns' with the class of a provider"
        document.problem(node, f"{what} has no provider", hint)
    if provider := values.get("provider"):
        _check_keys(document, node, provider, keys)
    class_name = values.pop("class", "")
    return DnsTarget(**{"provider": "", **values, "class_name": class_name})


def _refuse_repeated(
    document: Document,
    zone: str,
    place: tuple[Node, DnsTarget],
    earlier: list[tuple[Node, DnsTarget]],
) -> None:
    """Report a zone of which an earlier entry would take all records; add its place to those."""
    node, target = place
    for other_node, other in earlier:
        if other.shares_profile(target):
            message = f"the zone {quoted(zone)} is already in the entry on line "
            hint = "remove one of the two, or let other `profiles` use each of them"
            document.problem(node, f"{message}{other_node.start_mark.line + 1}", hint)
            break
    earlier.append(place)


def _check_keys(document: Document, node: Node, provider: str, keys: Mapping[str, Scalar]) -> None:
    """Report what the provider needs and is missing, and the keys of the other provider."""
    required = _REQUIRED[provider]
    if required not in keys:
        message = f"an entry with the provider {provider} needs {required}"
        document.problem(node, message, _EXAMPLES[required])
    for other, names in _OWN_KEYS.items():
        for name in names if other != provider else ():
            if name in keys:
                message = f"{name} has no effect with the provider {provider}"
                document.problem(keys[name], message, f"remove it; it is for {other}")


def _readers(
    document: Document, directory: Path, parse_zone: ParseZone
) -> dict[str, Callable[[Node], object]]:
    def zone(text: str) -> str:
        return _zone(text, parse_zone)

    def key_file(text: str) -> str:
        return str(directory / _key_file(text))

    return {
        "zones": lambda node: _read_zones(document, node, zone),
        "profiles": lambda node: _read_profiles(document, node),
        "settings": lambda node: read_provider_settings(document, node),
        **scalar_readers(
            document,
            {
                "provider": _provider,
                "server": lambda text: str(parse_server(text)),
                "key_file": key_file,
                "class": check_class,
                "ttl": integer(1, _MAX_TTL),
            },
        ),
    }


def _read_zones(document: Document, node: Node, zone: Callable[[str], str]) -> tuple[str, ...]:
    hint = "name zones, or remove it for all zones that the target has"
    return read_list(document, node, "zones", on_text(zone), if_empty=hint)


def _read_profiles(document: Document, node: Node) -> tuple[str, ...]:
    hint = "name profiles, or remove it for all but the sandbox"
    return read_list(document, node, "profiles", on_text(profile_name), if_empty=hint)


def _zone(text: str, parse_zone: ParseZone) -> str:
    """The name of a zone, or a glob, in lower case and without trailing dot."""
    if "://" in text or not is_glob(text):
        return parse_zone(text)
    glob = text.lower().removesuffix(".")
    if len(glob) > _MAX_NAME or not re.fullmatch(_GLOB, glob):
        hint = "write it as in '*.example.com'; internationalized labels as A-labels (xn--...)"
        raise UsageError(f"{quoted(text)} is not a glob of zone names", hint=hint)
    return glob


def _provider(text: str) -> str:
    if text not in _REQUIRED:
        hint = "write rfc2136, or octodns with the class of the provider"
        raise UsageError(f"unknown provider {quoted(text)}", hint=hint)
    return text


def _key_file(text: str) -> str:
    if not text or "\0" in text:
        raise UsageError("the file name is empty or invalid", hint="name a TSIG key file")
    return file_path(text)


def check_class(text: str) -> str:
    if not re.fullmatch(_CLASS, text):
        hint = "write module and class, such as octodns_route53.Route53Provider"
        raise UsageError(f"{quoted(text)} is not the name of a Python class", hint=hint)
    return text
