"""The text of a first spec file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from dkimctl.text.yaml_scalars import yaml_scalar

_TEXT = """\
# A spec file for `dkimctl register`.

# Apply to every entry below that does not set them. Any field except sign_domain and selector.
defaults:
  # Without key_len the service makes 1024-bit keys; RFC 8301 asks for at least 2048.
  key_len: 2048
  # When signing starts, so that there is time to publish the records before. Always with the
  # offset of your time zone.
  start_date: {start_date}
  # 0: not for third-party signing.
  # default: 0
  # false: registered, but not used for signing until it is enabled at the service.
  # enable: true

# A name alone: the service chooses the selector. With your own selector, and other fields:
#   - sign_domain: mail.example.com
#     selector: s2027
domains:
{entries}"""


def first_specs(domains: Iterable[str], start: datetime) -> str:
    """The text of a spec file for these domains; signing starts at `start`, with its offset."""
    entries = "".join(f"  - {yaml_scalar(domain)}\n" for domain in domains)
    return _TEXT.format(start_date=start.isoformat(timespec="minutes"), entries=entries)
