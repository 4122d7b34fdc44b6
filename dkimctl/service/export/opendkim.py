"""Tables of opendkim (opendkim.conf(5)).

opendkim reads them when it starts, and on SIGUSR1; the key files, for each message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from dkimctl.service.export.plan import Plan


def opendkim_files(plan: Plan, directory: Path, keys: Path) -> Mapping[str, str]:
    """The content of each file in `directory`, in the order in which they are written.

    The last one names the two tables, so they take effect together. `keys` has the key files.
    """
    signing = {domain: key.fqdn for domain, key in sorted(plan.by_domain.items())}
    if plan.third_party:
        signing["*"] = plan.third_party.fqdn  # looked up last
    named = {
        "KeyTable": "".join(
            f"{key.fqdn} {key.sign_domain}:{key.selector}:{keys / key.fqdn}\n" for key in plan.keys
        ),
        "SigningTable": "".join(f"{domain} {fqdn}\n" for domain, fqdn in signing.items()),
    }
    files = {f"{name}.{_digest(text)}": text for name, text in named.items()}
    # Unlike refile:, file: compares whole names, and has no patterns.
    lines = (f"{name} file:{directory / file}\n" for name, file in zip(named, files, strict=True))
    return {**files, "opendkim.conf": "".join(lines)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
