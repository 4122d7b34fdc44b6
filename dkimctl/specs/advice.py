"""Warnings about specs that are valid, but seldom intended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from dkimctl.models.registration import DomainSpec
from dkimctl.text.escaping import few

_NAMED = 3  # domains
_LONG = 2048  # bits
# Resolvers that ask too early remember for up to an hour, in most zones, that there is no record.
_LEAD = timedelta(hours=1)


def doubtful(specs: Iterable[DomainSpec], now: datetime) -> Iterator[DomainSpec]:
    """Those of `specs` that `warnings` has something to say about."""
    soon = now + _LEAD
    return (spec for spec in specs if spec.key_len != _LONG or signs_by(spec, soon))


def warnings(specs: Sequence[DomainSpec], now: datetime) -> list[str]:
    """One line for each kind of doubt about specs whose defaults are applied.

    Keys of 1024 bits, stated or by the service's default (interface 2.3), where RFC 8301
    3.2 wants at least 2048; and signing that starts at registration, or too soon after it for
    DNS to be ready.
    """
    short = [spec.sign_domain for spec in specs if spec.key_len != _LONG]
    at_once = [spec.sign_domain for spec in specs if signs_by(spec, now)]
    soon = [
        spec.sign_domain
        for spec in specs
        if signs_by(spec, now + _LEAD) and not signs_by(spec, now)
    ]
    lines = []
    if short:
        lines.append(f"1024-bit keys for {_summary(short)}: write key_len: 2048 (RFC 8301)")
    if at_once:
        lines.append(
            f"signing starts at registration, before DNS is published, for {_summary(at_once)}: "
            "write a start_date in the future, or enable: false"
        )
    if soon:
        lines.append(
            f"signing starts within the hour for {_summary(soon)}: publish the records at once, "
            "and check them with `dkimctl check-dns --wait 30m`"
        )
    return lines


def signs_by(spec: DomainSpec, time: datetime) -> bool:
    """Whether the key of a spec would sign at `time`."""
    if spec.enable is False:
        return False
    return spec.start_date is None or _start(spec.start_date) <= time


# The entries of a file have few different dates.
_start = lru_cache(maxsize=64)(datetime.fromisoformat)


def _summary(domains: Sequence[str]) -> str:
    count = "1 domain" if len(domains) == 1 else f"{len(domains)} domains"
    return f"{count} ({few(domains, _NAMED)})"
