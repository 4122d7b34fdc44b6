"""With a run a day, whatever a policy says: how long keys sign, and what a freeze keeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dkimctl.ledger.ledger import DomainKeys
from dkimctl.models import KeyHistory, Registration
from dkimctl.names import Selection
from dkimctl.rotation.successors import find_due
from dkimctl.settings.rotation import Policies, RotationSettings

BEGIN = datetime(2027, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
DAYS = 300


@st.composite
def policies(draw):
    max_age = draw(st.integers(4, 200))
    lead = draw(st.integers(1, max_age - 1) | st.just(min(7, max_age - 1)))
    freeze, end = [], BEGIN
    for wait, length in draw(st.lists(st.tuples(st.integers(1, 200), st.integers(1, 60)))):
        begin = end + wait * DAY
        end = begin + length * DAY
        freeze.append((begin, end))
    return RotationSettings(max_age * DAY, lead * DAY, limit=2, freeze=tuple(freeze))


def live(policy, waits, hours):
    """The keys of each domain after a run a day, and of which was told that they sign too long.

    The first one is registered on the first day, and starts some days later.
    """
    domains = {}

    def register(domain, selector, now, start):
        dates = start, 0, True, None, now.isoformat(timespec="seconds"), "201"
        domains.setdefault(domain, []).append(Registration(domain, selector, 2048, *dates))

    for number, wait in enumerate(waits):
        register(f"d{number}.example", "s1", BEGIN, (BEGIN + wait * DAY).isoformat())
    told, is_low = set(), False
    for day in range(1, DAYS):
        now = BEGIN + day * DAY + hours[day % len(hours)] * DAY / 24
        known = [DomainKeys(name, dict.fromkeys(domains[name], KeyHistory())) for name in domains]
        ledger = SimpleNamespace(domains=lambda known=known, **_: iter(known))
        due = find_due(ledger.domains(), Selection(), Policies([policy]), now)
        told |= {key.registration.key for key in due.undecided}
        is_low |= bool(due.limits)
        assert len(due.specs) <= policy.limit
        assert not due.specs or policy.frozen_until(now) is None
        for spec in due.specs:
            register(spec.sign_domain, spec.selector, now, spec.start_date)
    return domains, told, is_low


@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    policies(), st.lists(st.integers(0, 300), min_size=1, max_size=4),
    st.lists(st.integers(0, 23), min_size=1, max_size=3),
)  # fmt: skip
def test_no_key_signs_longer_than_max_age_unless_that_is_told(policy, waits, hours):
    domains, told, is_low = live(policy, waits, hours)
    for line in domains.values():
        for old, new in zip(line, [*line[1:], None], strict=True):
            # Since the registration, unless that was long before the start, or the lead is so long
            # that each key would be replaced at once.
            is_usual = policy.lead <= policy.max_age / 2 - DAY
            begin = max(old.created_at, old.starts_at - policy.lead * is_usual)
            until = new.starts_at if new else BEGIN + (DAYS - 1) * DAY
            if until > begin + policy.max_age and not is_low:
                assert old.key in told
