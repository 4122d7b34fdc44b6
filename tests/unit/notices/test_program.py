"""Programs that take a notice, and programs that misbehave."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from dkimctl.errors import ServiceError
from dkimctl.notices import run_notice_program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts")

DOCUMENT = b'{"version": 1}\n'
HUGE = b"x" * (4 << 20)  # more than a pipe holds


@pytest.fixture
def script(tmp_path):
    """Write a shell script, and give the command that runs it."""

    def write(text: str, mode: int = 0o755) -> list[str]:
        path = tmp_path / "page"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(mode)
        return [str(path), "--token", "topsecret"]

    return write


def run(words, document: bytes = DOCUMENT, *, seconds: float = 30.0, **environ: str) -> None:
    run_notice_program(words, document, dict(os.environ) | environ, seconds=seconds)


def failure(words, document: bytes = DOCUMENT, **options) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        run(words, document, **options)
    error = caught.value
    assert "topsecret" not in f"{error.message}{error.hint}"
    assert error.hint
    return error


def test_the_program_gets_the_document_and_its_arguments(script, tmp_path):
    run(script(f'cat > {tmp_path}/in; echo "$@" > {tmp_path}/words'))
    assert (tmp_path / "in").read_bytes() == DOCUMENT
    assert (tmp_path / "words").read_text() == "--token topsecret\n"


def test_no_shell_reads_the_command(script, tmp_path):
    words = script(f'echo "$1" > {tmp_path}/word')
    run([words[0], "$(touch x); `id` *"])
    assert (tmp_path / "word").read_text() == "$(touch x); `id` *\n"


def test_the_program_does_not_inherit_our_secrets(script, tmp_path):
    ours = {
        "DKIMCTL_CLIENT_SECRET": "a", "DKIMCTL_ACCESS_TOKEN": "b",
        "DKIMCTL_SERVICE_PASSPHRASE": "c",
    }  # fmt: skip
    run(script(f"env > {tmp_path}/env"), **ours, PAGER_KEY="its own")
    lines = (tmp_path / "env").read_text()
    assert "PAGER_KEY=its own" in lines
    assert [name for name in ours if name in lines] == []


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [("exit 7", 0o755, '/page" failed with exit status 7'),
     ("kill -9 $$", 0o755, '/page" was killed by SIGKILL'),
     ("exit", 0o644, "to notify: Permission denied")],
)  # fmt: skip
def test_a_program_that_fails(script, text, mode, said):
    assert failure(script(text, mode)).message.endswith(said)


def test_what_cannot_be_run_is_named_and_escaped(tmp_path):
    assert failure(["/bin/true", "a\0b"]).message == 'cannot run "/bin/true" to notify: invalid'
    assert "\x1b" not in failure([f"{tmp_path}/\x1b[31m"]).message


@pytest.mark.parametrize("text", ["exec <&-; exit 0", "exit 0", "head -c 1 > /dev/null"])
def test_a_program_that_does_not_read_all_is_no_error(script, text):
    before = signal.getsignal(signal.SIGPIPE)
    run(script(text), HUGE)
    assert signal.getsignal(signal.SIGPIPE) is before


def test_a_program_that_hangs_is_killed_with_all_that_it_started(script, tmp_path):
    started = time.monotonic()
    words = script(f"trap '' TERM\nsleep 61 & echo $! > {tmp_path}/pid\nsleep 62")
    error = failure(words, seconds=0.5)
    assert time.monotonic() - started < 10
    assert error.message.endswith('/page" did not end within 1 s, and was killed')
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_a_program_that_leaves_another_in_the_background_has_ended(script, tmp_path):
    started = time.monotonic()
    run(script(f"sleep 20 & echo $! > {tmp_path}/pid; exit 0"))
    assert time.monotonic() - started < 10
    background = int((tmp_path / "pid").read_text())
    os.kill(background, signal.SIGKILL)  # it still runs


def test_ctrl_c_ends_the_program(script, tmp_path):
    words = script(f"echo $$ > {tmp_path}/pid; exec sleep 60")

    def interrupt() -> None:
        wait_for(tmp_path / "pid")
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(words)
    thread.join()
    assert has_ended(int((tmp_path / "pid").read_text()))


def wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists() and path.read_text().strip():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} was not written")


def has_ended(pid: int) -> bool:
    """Whether the process is gone, or dead and not yet waited for, within ten seconds."""
    for _ in range(200):
        if not _is_running(pid):
            return True
        time.sleep(0.05)
    return False


def _is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    if stat.parents[1].is_dir():  # Linux, which tells a dead one that nobody waits for
        return stat.exists() and ") Z " not in stat.read_text()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
