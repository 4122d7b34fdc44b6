import json

import pytest

from dkimctl.cli.output.streams import AlikeWarnings, Reporter


def _warn_of(count: int, reporter: Reporter) -> None:
    warnings = AlikeWarnings(reporter)
    for number in range(count):
        warnings.warn(f"{number}.example is not registered", kind="not registered", code="x")
    warnings.close()
    reporter.close()


def test_the_first_twenty_and_how_many_more(capsys: pytest.CaptureFixture[str]) -> None:
    _warn_of(1200, Reporter())
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 21
    assert lines[19] == "dkimctl: warning: 19.example is not registered"
    assert lines[20] == ("dkimctl: warning: … and 1,180 more: not registered (--verbose lists all)")


def test_twenty_are_all_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _warn_of(20, Reporter())
    assert "…" not in capsys.readouterr().err


def test_verbose_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    _warn_of(1200, Reporter(verbose=True))
    assert len(capsys.readouterr().err.splitlines()) == 1200


def test_json_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    _warn_of(1200, Reporter(as_json=True))
    assert len(json.loads(capsys.readouterr().err)["warnings"]) == 1200
