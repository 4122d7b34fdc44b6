"""What DNS has at names, as dig tells it."""

from __future__ import annotations

from collections.abc import Sequence

import dns.rdata

from mail import Answers
from network import Network


def ask(network: Network, names: Sequence[str], *words: str) -> Answers:
    """The TXT values of names, from the resolver, or another server (`@` and its address)."""
    if not names:
        return {}
    answers: dict[str, tuple[bytes, ...]] = dict.fromkeys(names, ())
    questions = " ".join(f"{one} TXT" for one in names).split()
    done = network.run("dig", "+noall", "+answer", *words, *questions)
    assert done.returncode == 0, done.stdout
    for line in done.stdout.splitlines():
        owner, _, _, _, text = line.split(None, 4)
        answers[owner.rstrip(".").lower()] += (_value(text),)
    return answers


def _value(text: str) -> bytes:
    return b"".join(dns.rdata.from_text("IN", "TXT", text).strings)
