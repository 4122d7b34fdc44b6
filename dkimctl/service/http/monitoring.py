"""How a served application is watched, as options or the environment say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from dkimctl.errors import UsageError, naming
from dkimctl.service.http.addresses import LOOPBACK, Network, TrustedProxies, parse_networks
from dkimctl.service.http.log_output import LogFormat

_LOG_FORMAT = "DKIMCTL_SERVICE_LOG_FORMAT"
_TRUSTED_PROXIES = "DKIMCTL_SERVICE_TRUSTED_PROXIES"
_METRICS_FROM = "DKIMCTL_SERVICE_METRICS_FROM"


@dataclass(frozen=True, slots=True)
class Monitoring:
    """How requests are logged (None: not at all), whose X-Forwarded-For is believed, and which
    peers may read /metrics.
    """

    requests: LogFormat | None = None
    proxies: TrustedProxies = field(default_factory=TrustedProxies)
    metrics_from: Sequence[Network] = LOOPBACK


def read_monitoring(
    requests: LogFormat | None, proxies: Sequence[str], metrics_from: Sequence[str]
) -> Monitoring:
    """From the values of --trusted-proxy and --metrics-from. Raises UsageError."""
    with naming("--trusted-proxy"):
        trusted = TrustedProxies.parse(proxies)
    with naming("--metrics-from"):
        return Monitoring(requests, trusted, parse_networks(metrics_from) or LOOPBACK)


def monitoring_from_environment() -> Monitoring:
    """From variables with comma-separated values. Raises UsageError.

    Its `requests` is the format of the whole log: see `log_to_stderr`.
    """
    with naming(_TRUSTED_PROXIES):
        trusted = TrustedProxies.parse(_values(_TRUSTED_PROXIES))
    with naming(_METRICS_FROM):
        networks = parse_networks(_values(_METRICS_FROM)) or LOOPBACK
    return Monitoring(log_format_from_environment(), trusted, networks)


def log_format_from_environment() -> LogFormat:
    """Text by default. Raises UsageError for an unknown format."""
    text = os.environ.get(_LOG_FORMAT) or LogFormat.TEXT
    if text not in list(LogFormat):
        raise UsageError(
            f"{_LOG_FORMAT} is not a log format", hint=f"set it to {' or '.join(LogFormat)}"
        )
    return LogFormat(text)


def _values(variable: str) -> list[str]:
    return [text.strip() for text in os.environ.get(variable, "").split(",") if text.strip()]
