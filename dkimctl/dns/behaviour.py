"""What the answers of a server have shown about it, so that it is asked in a way that works."""

from __future__ import annotations

from dkimctl.dns.burst import BurstResult
from dkimctl.dns.messages import EDNS_REFUSALS, USEFUL, Answer
from dkimctl.dns.udp import Reply

MAX_FAILURES = 8  # in a row; then something does not work


class ServerBehaviour:
    """Whether a server answers over UDP, limits the rate of its answers, and understands EDNS.

    `needs_udp`: answers over TCP are believed only if it has answered over UDP as well.
    """

    def __init__(self, *, needs_udp: bool) -> None:
        self._needs_udp = needs_udp
        self._answers_udp = False  # at least once; a truncated answer counts
        self.edns = True  # whether to use it
        self._has_used_edns = False
        self._lost = 0  # answers over UDP, in a row, lost or truncated
        self._same_refusals = 0  # in a row, both with and without EDNS
        self._answers_tcp: bool | None = None  # the last question; None: not yet asked

    @property
    def limits_udp(self) -> bool:
        """Whether it is better asked over TCP: it loses or truncates many answers over UDP."""
        is_limiting = self._lost >= MAX_FAILURES and not self.lacks_udp
        return is_limiting and self._answers_tcp is not False

    @property
    def lacks_udp(self) -> bool:
        """Whether it has never answered over UDP, but should."""
        return self._needs_udp and not self._answers_udp

    @property
    def answers_only_tcp(self) -> bool:
        return bool(self._answers_tcp) and self.lacks_udp

    @property
    def edns_refusals(self) -> frozenset[int]:
        """The RCODEs after which to ask again without EDNS."""
        is_decisive = not self.edns or self._same_refusals >= MAX_FAILURES
        return frozenset() if is_decisive else EDNS_REFUSALS

    def note_burst(self, result: BurstResult, count: int) -> None:
        """The result of a burst of `count` questions."""
        answered = len(result.answers) + result.refused
        if answered or result.truncated:
            self._answers_udp = True
            self._lost = count - answered
        if self.edns and any(answer.rcode in USEFUL for answer in result.answers.values()):
            self._has_used_edns = True

    def note_reply(self, reply: Reply, *, edns: bool) -> None:
        """A reply over UDP to a single question, asked with EDNS or without."""
        self._answers_udp = True
        if reply.answer is None:
            return
        self._lost = 0
        if reply.to_edns:
            self._has_used_edns = self._has_used_edns or reply.answer.rcode in USEFUL
        elif edns and not self._has_used_edns:
            self.edns = False

    def note_refusal(self, refusal: Answer, plain: Answer) -> None:
        """A refusal of a question, and the answer to the same question without EDNS."""
        if plain.rcode == refusal.rcode:
            self._same_refusals += 1
            return
        self._same_refusals = 0
        if plain.rcode in USEFUL and not self._has_used_edns:
            self.edns = False

    def note_tcp(self, *, answered: bool) -> None:
        """Whether it has answered a question over TCP, after none or a truncated one over UDP."""
        self._answers_tcp = answered
        if answered:
            self._lost += 1
