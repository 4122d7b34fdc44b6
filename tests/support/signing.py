"""Sign zone files (DNSSEC) with BIND's tools, rightly or not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from delegation import Security, Zone

_VALIDITY = {
    Security.SECURE: ("-s", "now-3600", "-e", "now+864000"),
    Security.WRONG_DS: ("-s", "now-3600", "-e", "now+864000"),
    Security.EXPIRED: ("-s", "now-864000", "-e", "now-86400"),
}


class Signer:
    """The keys of signed zones, one each, in `directory`."""

    def __init__(self, directory: Path, need: Callable[[str], str]) -> None:
        self._directory = directory
        self._need = need
        self._keys: dict[str, Path] = {}  # the public key, by zone

    def make_keys(self, zones: Iterable[Zone]) -> None:
        """Make a key for each of the zones that has none."""
        for zone in zones:
            if zone.name not in self._keys:
                self._keys[zone.name] = self._make_key(zone.name)

    def trust_anchor(self) -> Path:
        """The file with the DNSKEY record of the root."""
        return self._keys[""]

    def ds(self, zone: Zone) -> str:
        """The line with the DS record of a zone, for the zone above."""
        key = self._keys[zone.name]
        if zone.security is Security.WRONG_DS:
            key = self._make_key(zone.name)
        return self._run("dnssec-dsfromkey", "-2", key.name)

    def sign(self, zone: Zone, file: Path) -> None:
        """Sign the zone file in place."""
        keys = self._keys[zone.name].name
        validity = _VALIDITY[zone.security]
        origin = f"{zone.name}."
        words = ("-P", "-z", "-o", origin, *validity, "-f", str(file), str(file), keys)
        file.write_text(file.read_text() + self._keys[zone.name].read_text())
        self._run("dnssec-signzone", *words)

    def _make_key(self, zone: str) -> Path:
        words = ("-q", "-a", "ECDSAP256SHA256", "-f", "KSK", "-n", "ZONE", f"{zone}.")
        return self._directory / f"{self._run('dnssec-keygen', *words).strip()}.key"

    def _run(self, program: str, *words: str) -> str:
        done = subprocess.run(
            [self._need(program), *words], cwd=self._directory, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
