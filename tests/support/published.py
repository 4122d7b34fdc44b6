"""Registrations in the sandbox, and zones with their records, right or wrong."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import dns.rdata
import dns.rdataclass
import dns.rdatatype
from dns.rdtypes.ANY.TXT import TXT

APEX = """$ORIGIN example.com.
$TTL 60
@ SOA ns.example.com. root.example.com. 1 3600 600 86400 60
@ NS ns.example.com.
ns A 127.0.0.1
"""


def register(
    cli, *domains: str, key_len: int = 2048, more: str = "enable: false"
) -> dict[str, str]:
    """Register `domains` with the selector s1; returns the TXT values by domain."""
    specs = f"defaults: {{key_len: {key_len}, {more}}}\ndomains:\n"
    specs += "".join(f"- {{sign_domain: {domain}, selector: s1}}\n" for domain in domains)
    done = cli("register", "--sandbox", "-", "--format", "json", stdin=specs)
    assert done.status == 0, done.err
    return {item["sign_domain"]: item["setting_values"]["value"] for item in done.json["items"]}


def txt(name: str, *values: str | bytes) -> str:
    """A zone file line for each TXT record of a name, as dnspython writes it."""
    lines = []
    for value in values:
        data = value.encode() if isinstance(value, str) else value
        strings = [data[at : at + 255] for at in range(0, len(data), 255)] or [b""]
        record = TXT(dns.rdataclass.IN, dns.rdatatype.TXT, strings)
        lines.append(f"{name}. TXT {record.to_text()}\n")
    return "".join(lines)


def name_of(domain: str) -> str:
    return f"s1._domainkey.{domain}"


def published(values: Mapping[str, str]) -> str:
    """The zone file lines that publish all of them."""
    return "".join(txt(name_of(domain), value) for domain, value in values.items())


def looks(home: Path) -> dict[str, str]:
    """The verdicts of the looks in the ledger, by domain."""
    [path] = home.rglob("ledger.db")
    with contextlib.closing(sqlite3.connect(path)) as ledger:
        query = "SELECT sign_domain, verdict FROM history WHERE verdict IS NOT NULL"
        return dict(ledger.execute(query))


def private_keys(home: Path) -> dict[tuple[str, str], bytes]:
    """The private keys (PEM) in the sandbox's store, by domain and selector."""
    [store] = home.rglob("sandbox.db")
    with contextlib.closing(sqlite3.connect(store)) as connection:
        rows = connection.execute("SELECT sign_domain, selector, private_key FROM registrations")
        return {(domain, selector): key for domain, selector, key in rows}
