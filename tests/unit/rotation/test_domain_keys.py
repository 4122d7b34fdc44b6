"""The keys of some domains have the stages that `list` shows."""

from __future__ import annotations

from datetime import UTC, datetime

from dkimctl.ledger.ledger import Ledger
from dkimctl.ledger.selection import Selection
from dkimctl.models.keys import KeyStage
from dkimctl.rotation.life import read_domain_keys, read_stages
from dkimctl.settings.config import RotationSettings

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SETTINGS = RotationSettings()


def test_the_keys_of_a_domain_also_those_that_were_removed(tmp_path, make_registration):
    dates = {"regist_date": "2026-01-01T00:00:00+00:00", "start_date": "2026-01-01T00:00+00:00"}
    made = [make_registration(selector=name, enable=True, **dates) for name in ("s1", "s2")]
    made += [make_registration("other.example", enable=False, **dates)]
    path = tmp_path / "ledger.db"
    with Ledger.open(path, base_url="https://x.example", client_id="c", clock=NOW.timestamp) as it:
        it.record(made)
        it.retire({made[0]: "s2"})
        found = read_domain_keys(it, {"example.com", "unknown.example"}, SETTINGS, NOW)
        every = Selection((), read_specs=list, to_domain=str)
        shown = read_stages(it, every, SETTINGS, NOW)
    assert {one.status.selector: one.registration for one in found} == {"s1": None, "s2": made[1]}
    assert found[0].status.stage is KeyStage.REMOVED
    same = {(one.sign_domain, one.selector, one.stage) for one in shown}
    assert {(one.status.sign_domain, one.status.selector, one.status.stage) for one in found} < same
