"""Killed at any moment, or answered wrongly, `register` loses and duplicates nothing.

The long forms are tests/bench/crash.py and tests/bench/faulty.py.
"""

from __future__ import annotations

import sys

import pytest

import crash
import faulty
from rehearsal import ASSIGNED, CHOSEN, EXPLICIT

COUNT = 400
needs_sigkill = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


@needs_sigkill
@pytest.mark.parametrize(
    "form",
    [EXPLICIT, pytest.param(ASSIGNED, marks=pytest.mark.nightly)],
    ids=lambda form: form.name,
)
def test_repeating_a_killed_command_finishes_the_job(tmp_path, form):
    crashes = crash.rehearse(tmp_path, form, kills=20, count=COUNT, seed=1, batch_size=5)
    assert crash.problems(form, crashes) == []
    assert crashes.moments[crash.START_UP] > 0
    assert crashes.moments[crash.SENDING] > 0
    assert (crashes.last.status, crashes.audit.unknown) == (0, [])
    assert len(crashes.last.items) == COUNT


@needs_sigkill
def test_killed_without_selectors_sent_domains_are_unknown_and_not_sent_again(tmp_path):
    crashes = crash.rehearse(tmp_path, CHOSEN, kills=20, count=COUNT, seed=1, batch_size=5)
    assert crash.problems(CHOSEN, crashes) == []
    assert crashes.moments[crash.SENDING] > 0
    assert crashes.in_doubt
    assert crashes.in_doubt <= set(crashes.audit.unknown)
    assert crashes.last.status == 4


def test_at_a_faulty_service_all_explicit_selectors_are_registered(tmp_path):
    passes = faulty.rehearse(tmp_path, EXPLICIT, count=COUNT, share=0.3, seed=1, batch_size=10)
    assert faulty.problems(EXPLICIT, passes) == []
    assert passes[0].audit.asked_again > 0
    assert passes[-1].run.status == 0
    assert len(passes[-1].store) == COUNT


def test_at_a_faulty_service_only_unanswered_domains_are_unknown(tmp_path):
    passes = faulty.rehearse(tmp_path, CHOSEN, count=COUNT, share=0.3, seed=1, batch_size=10)
    assert faulty.problems(CHOSEN, passes) == []
    audit = passes[-1].audit
    assert 0 < audit.unknown_registered < len(audit.unknown)
    assert passes[-1].run.status == 4
    assert len(passes[-1].store) == COUNT - len(audit.unknown) + audit.unknown_registered
