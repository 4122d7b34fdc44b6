"""Disk space for the answers, before anything is sent."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from dkimctl.errors import LedgerError
from dkimctl.ledger.opening import require_disk_space
from dkimctl.models import DomainSpec


def test_too_little_disk_space_is_reported(small_disk, on_disk, write):
    with write(path=on_disk) as ledger:
        ledger.require_disk_space(400)
        with pytest.raises(
            LedgerError, match=r"5000 entries may need 69\.\d MB, and only 16\.\d MB"
        ) as caught:
            ledger.require_disk_space(5000)
    assert f"free space at {on_disk.parent}" in caught.value.hint


@pytest.mark.parametrize("batch_size", [1, 7, 50, 400])
def test_answers_fit_into_the_space_required_for_them(
    small_disk, on_disk, write, make_registration, batch_size
):
    """In batches of any size, with their intents, in random order."""
    answers = [make_registration(f"{hash(str(n)):x}.example") for n in range(400)]
    with write(path=on_disk) as ledger:
        small_disk.fill(leaving=9_700_000)
        ledger.require_disk_space(len(answers))
        with pytest.raises(LedgerError):
            ledger.require_disk_space(len(answers) + 50)
        for first in range(0, len(answers), batch_size):
            batch = answers[first : first + batch_size]
            ledger.commit(begun=[[DomainSpec(*answer[:2]) for answer in batch]])
            ledger.commit(answered=batch, settled=[answer.key for answer in batch])
        assert len(list(ledger.all())) == 400


def test_no_disk_has_space_for_everything(write):
    with write() as ledger, pytest.raises(LedgerError, match="not enough space for the ledger"):
        ledger.require_disk_space(10**15)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_a_file_system_that_reports_no_size_is_assumed_to_have_space():
    path = Path("/proc/ledger.db")
    assert shutil.disk_usage(path.parent).free == 0
    assert require_disk_space(path, 1) == 1
