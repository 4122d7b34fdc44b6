"""The URL of a service in canonical form, so that equivalent URLs are one account.

The form is that of RFC 3986 sections 6.2.2 and 6.2.3. Errors never quote the text, which may
contain a password.
"""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from typing import NamedTuple, NoReturn
from urllib.parse import unquote

from dkimctl.errors import UsageError
from dkimctl.text import quoted

_MAX_NAME = 253  # octets of a host name
_PASSWORD_ELSEWHERE = "remove it; it is taken from ~/.pgpass, or from PGPASSWORD"  # noqa: S105
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")

# Compiled on first use: not every command reads a URL.
_FORBIDDEN = r"[\0-\x20\x7f-\xa0\\\ud800-\udfff]"
_URL = r"(?ai)(https?)://([^/?#]*)([^?#]*)(.*)"  # ASCII, since a long s equals an s otherwise
_AUTHORITY = r"(\[[^][]*\]|[^][:]*)(?::(0*)([0-9]{0,5}))?"
_URL_HOST = r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*"
_NUMBER = r"[0-9]+|0x[0-9a-f]*"
_ENCODED = r"%([0-9A-Fa-f]{2})"
_WRONGLY_ENCODED = r"%(?![0-9A-Fa-f]{2})"
_UNRESERVED = r"[A-Za-z0-9._~-]"
_DATABASE_URL = r"(?i:postgres(?:ql)?)://(?:([^/?#@]*)@)?([^/?#@]*)/([^/?#]+)(?:\?([^?#]*))?"
_TO_ENCODE = r"[^A-Za-z0-9._~!$&'()+*,;=:@/%-]+"

PORT = 53  # of DNS servers
_WITH_PORT = r"\[([^\]]*)\](?::([0-9]{1,5}))?|([^:]*):([0-9]{1,5})"
_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_HOST_NAME = rf"{_LABEL}(?:\.{_LABEL})*\.?"


class Url(NamedTuple):
    """An http or https URL in canonical form, which `str` gives as text."""

    scheme: str
    host: str  # an IPv6 address is in brackets
    port: str  # "" for that of the scheme
    path: str  # empty, or begins with a slash and does not end with one

    def __str__(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{self.host}{port}{self.path}"


def parse_url(text: str, suggested_scheme: str = "https") -> Url:
    """The canonical form of an http or https URL without user, query and fragment.

    A trailing slash makes no difference. Raises UsageError, whose hint suggests the scheme if the
    URL has none.
    """
    if re.search(_FORBIDDEN, text):
        _refuse("contains a space, backslash or control character", "remove it")
    match = re.fullmatch(_URL, text)
    if match is None or not match[2]:
        _refuse("lacks a scheme or host", f"write {suggested_scheme}://HOST")
    scheme, authority, path, rest = match[1].lower(), match[2], match[3], match[4]
    if "@" in authority:
        _refuse("contains a user name or password", "remove the part before the @")
    if rest:
        _refuse("has a query or fragment", "end the URL after its path")
    if re.search(_WRONGLY_ENCODED, text):
        _refuse("contains a % without two hexadecimal digits", "write %25 for the character %")
    parts = re.fullmatch(_AUTHORITY, authority)
    host, zeros, digits = parts.groups("") if parts else ("", "", "")
    port = digits or zeros[:1]  # without leading zeros; "" if there is none
    if parts is None or int(port or 0) > 65_535:
        _refuse("has an invalid host or port", "correct it")
    return Url(scheme, _host(host), "" if port == _DEFAULT_PORTS[scheme] else port, _path(path))


def parse_database_url(text: str) -> str:
    """The canonical form of the URL of a PostgreSQL database; TLS is verified, except on loopback.

    Raises UsageError, also if it has a password.
    """
    if re.search(_FORBIDDEN, text):
        _refuse("contains a space, backslash or control character", "remove it")
    match = re.fullmatch(_DATABASE_URL, text)
    if match is None or re.search(_WRONGLY_ENCODED, text):
        if re.match(r"(?i:postgres(?:ql)?)://[^/]*@.*[/@]", text):
            _refuse("is invalid, or contains a password", _PASSWORD_ELSEWHERE)
        _refuse("is not that of a PostgreSQL database", "write postgresql://USER@HOST/NAME")
    user, authority, name, query = match.groups("")
    fields = dict(pair.partition("=")[::2] for pair in query.split("&") if query)
    if ":" in user or "password" in query.lower():
        _refuse("contains a password", _PASSWORD_ELSEWHERE)
    if fields.keys() - {"sslmode", "sslrootcert"}:
        _refuse("has a parameter other than sslmode and sslrootcert", "remove it")
    parts = re.fullmatch(_AUTHORITY, authority)
    if parts is None or int(parts[3] or 0) > 65_535:
        _refuse("has an invalid host or port", "correct it")
    host = _host(parts[1]) if parts[1] else ""
    if not (host and is_loopback(host)):
        mode = fields.setdefault("sslmode", "verify-full")
        if host and mode not in ("verify-full", "verify-ca"):
            _refuse("allows TLS that is not verified", "write sslmode=verify-full; sslrootcert=FILE"
                    " names the CA, or with verify-ca the server's own certificate")  # fmt: skip
    port = f":{parts[3]}" if parts[3] else ""
    query = "&".join(f"{key}={value}" for key, value in fields.items())
    return f"postgresql://{f'{user}@' if user else ''}{host}{port}/{name}{query and f'?{query}'}"


def to_a_labels(name: str) -> str:
    """A name with A-labels for U-labels (IDNA 2008), no final dot. Raises UnicodeError."""
    import idna

    labels = idna.uts46_remap(name).removesuffix(".").split(".")
    return ".".join(
        label if label.isascii() and not label.startswith("xn--") else idna.alabel(label).decode()
        for label in labels
    )


def is_loopback(host: str) -> bool:
    """Whether a canonical host is this machine: localhost, 127.0.0.0/8 or ::1."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host == "localhost"
    # Not `is_loopback`, which for an IPv4 address within IPv6 depends on Python's version.
    return address in ipaddress.ip_network("127.0.0.0/8") or address == ipaddress.ip_address("::1")


def other_loopback_urls(text: str) -> list[str]:
    """The URLs that differ from this canonical one only in the name of this machine."""
    url = parse_url(text)
    hosts = _LOOPBACK_HOSTS if url.host in _LOOPBACK_HOSTS else ()
    return [str(url._replace(host=host)) for host in hosts if host != url.host]


def _host(text: str) -> str:
    """A host in lower case: A-labels of IDNA 2008, and addresses as RFC 5952 writes them.

    Without the dot that may end a name: in DNS it is the same host, and certificates and SNI
    never have it (RFC 6066 section 3), so TLS fails with it.
    """
    if text.startswith("["):
        try:
            address = ipaddress.IPv6Address(text[1:-1])
        except ValueError:
            address = None
        if address is None or address.scope_id is not None:  # a zone is of this machine alone
            _refuse("has an invalid IPv6 address", "write it as in [2001:db8::1], without a zone")
        mapped = address.ipv4_mapped  # which Python 3.13 writes otherwise
        return f"[{address.compressed if mapped is None else f'::ffff:{mapped}'}]"
    name = text
    if "%" in name:
        name = unquote(name)  # what is not UTF-8 becomes a character that no name has
    if not name.isascii() and len(name) <= _MAX_NAME:
        try:
            name = to_a_labels(name)
        except UnicodeError:
            _refuse("has an invalid internationalized host name", "see RFC 5891 for what is valid")
    name = name.lower().removesuffix(".")
    if len(name) > _MAX_NAME or not re.fullmatch(_URL_HOST, name):
        _refuse("has an invalid host or port", "correct it")
    if re.fullmatch(_NUMBER, name.rpartition(".")[2]):
        try:
            ipaddress.IPv4Address(name)
        except ValueError:
            _refuse("has an invalid IPv4 address", "write four decimal numbers, such as 127.0.0.1")
    return name


def _path(text: str) -> str:
    def decoded(match: re.Match[str]) -> str:
        """A percent-encoded character itself if it is unreserved, else in upper case."""
        character = chr(int(match[1], 16))
        return character if re.fullmatch(_UNRESERVED, character) else match[0].upper()

    def encoded(match: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in match[0].encode())

    # RFC 3986 section 5.2.4, but for a slash at the end.
    kept: list[str] = []
    for segment in re.sub(_TO_ENCODE, encoded, re.sub(_ENCODED, decoded, text)).split("/")[1:]:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "".join(f"/{segment}" for segment in kept).rstrip("/")


def _refuse(what: str, hint: str) -> NoReturn:
    raise UsageError(f"the URL {what}", hint=hint)


class Address(NamedTuple):
    """An IP address, or the name of a host, and a port."""

    host: str
    port: int = PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.host if self.port == PORT else f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or `[::1]:5353`. Raises UsageError."""
    if address := _read(text, or_name=False):
        return address
    hint = "write an IP address, such as 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353"
    raise UsageError(f"invalid DNS server address {quoted(text)}", hint=hint)


def parse_server(text: str) -> Address:
    """Parse what `parse_address` does, or the name of a host: `ns1.example.com:5353`.

    The name is in lower case, without trailing dot. Raises UsageError, which does not quote the
    text: it may be a URL with a password.
    """
    if address := _read(text, or_name=True):
        return address
    hint = "write an IP address or a host name, such as 192.0.2.1, [2001:db8::1]:5353 or "
    raise UsageError("invalid DNS server", hint=f"{hint}ns1.example.com")


def _read(text: str, *, or_name: bool) -> Address | None:
    host, port = text, PORT
    if match := re.fullmatch(_WITH_PORT, text):
        host, port = match[1] or match[3] or "", int(match[2] or match[4] or PORT)
    if not 0 < port < 1 << 16 or not host.isprintable():  # the zone of an address may be any text
        return None
    with suppress(ValueError):
        return Address(str(ipaddress.ip_address(host)), port)
    name = host.lower().removesuffix(".")
    is_number = name.rpartition(".")[2].isdigit()  # the end of a mistyped IPv4 address
    is_name = len(name) <= _MAX_NAME and not is_number and re.fullmatch(_HOST_NAME, host.lower())
    return Address(name, port) if or_name and is_name else None
