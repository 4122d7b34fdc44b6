"""The timer of a profile: units of systemd or, where that is not, a line of the user's crontab.

What is written holds a checksum of itself, by which it is told from what somebody has edited.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import platformdirs

from dkimctl.errors import NegativeAnswer, OutputError, UsageError, os_errors_as
from dkimctl.files import atomic_writer
from dkimctl.text import TIMERS_DOC, printable

SYSTEM_UNITS, SYSTEM_CRON = Path("/etc/systemd/system"), Path("/etc/cron.d")
RUNTIME = Path("/run")
_CRONTAB = "a line of your crontab"
_HOURS = 6  # between two runs
_NO_SUM = "0" * 8
_SUM = r"(dkimctl timer [\w.-]+ \()[0-9a-f]{8}(?=\))"


class Job(NamedTuple):
    """What a timer runs: a command for a profile, with variables, and a file of more of them."""

    profile: str
    words: Sequence[str]
    variables: Mapping[str, str]
    secrets: Path  # may be missing


class TimerStep(NamedTuple):
    """A part of what installs or removes a timer: its title, what it writes, and what does it."""

    title: str
    text: str
    do: Callable[[], object]  # may raise OutputError; the next plan then goes on


class TimerPlan(NamedTuple):
    """What is left to do, and how to see the timer afterwards."""

    steps: Sequence[TimerStep] = ()
    see: Sequence[str] = ()
    by_hand: str = ""  # for another scheduler, where neither systemd nor cron is: the command


def find_plan(job: Job, *, remove: bool) -> TimerPlan:
    """What installs or removes the timer. Raises DkimctlError, also if there is one not ours."""
    if sys.platform in ("win32", "darwin"):
        name = "the Task Scheduler" if sys.platform == "win32" else "launchd"
        hint = f"have {name} run `dkimctl rotate run --quiet`, as {TIMERS_DOC} shows"
        raise UsageError("timers are installed for systemd and cron only", hint=hint)
    for text in (*job.words, *job.variables.values(), str(job.secrets)):
        if not text.isprintable():
            hint = "rename it, without such characters"
            raise UsageError(f"no timer can name {printable(text)}", hint=hint)
    units, line = _unit_files(job.profile, _own_units()), None
    with suppress(OutputError):  # such as of a user who may have none
        line = _line_of(_read_crontab(), job.profile)
    has_units = any(map(os.path.lexists, units))
    there = installed_timer(job.profile, Path(job.variables["DKIMCTL_STATE_DIR"]))
    is_own = there in ("", str(units[1]), _CRONTAB)
    if not (is_own or (remove and (has_units or line is not None))):
        raise _not_ours(there)
    if has_units or (line is None and _runs_systemd()):
        return _plan_units(job, units, remove=remove)
    if shutil.which("crontab"):
        wanted = None if remove else _crontab_line(job)
        steps = _changing(_CRONTAB, line, wanted, partial(_edit_crontab, job.profile, line, wanted))
        return TimerPlan(steps, ["its line: `crontab -l`; cron mails the output of its runs"])
    return TimerPlan() if remove else TimerPlan(by_hand=_shell_command(job))


def installed_timer(profile: str, state_dir: Path) -> str:
    """Where the timer of a profile is, edited or not, enabled or not; "" if there is none."""
    if sys.platform in ("win32", "darwin"):
        return ""
    texts = dict[str, str | None]()
    for directory in (_own_units(), SYSTEM_UNITS):
        service, timer = _unit_files(profile, directory)
        if os.path.lexists(timer):
            texts[str(timer)] = _read(service)
    for file in sorted(SYSTEM_CRON.glob("*")):
        if _line_of(lines := _read(file) or "", profile):
            texts[str(file)] = lines
    if not _runs_systemd():  # cron logs each question
        with suppress(OutputError):
            texts[_CRONTAB] = _line_of(_read_crontab(), profile)
    # One of another directory of state is the timer of another ledger.
    name, path = "DKIMCTL_STATE_DIR=", str(state_dir.absolute())
    ours = _unit_word(f"{name}{path}"), f"{name}{shlex.quote(path)}".replace("%", "\\%")
    is_ours = rf"(?:{'|'.join(map(re.escape, ours))})(?!\S)"
    for place, text in texts.items():
        if text is not None and (name not in text or re.search(is_ours, text)):
            return place
    return ""


def _runs_systemd() -> bool:
    """Whether systemd runs for the user: sd_booted(3), or the user's session."""
    uid = os.geteuid()
    return (RUNTIME / (f"user/{uid}/systemd" if uid else "systemd/system")).exists()


def _plan_units(job: Job, files: Sequence[Path], *, remove: bool) -> TimerPlan:
    systemctl, timer = _systemctl(), files[1].name
    shown = ["journalctl", *systemctl[1:], "--unit", files[0].stem]
    see = [f"its next run: `{shlex.join([*systemctl, 'list-timers', timer])}`",
           f"the output of its runs: `{shlex.join(shown)}`"]  # fmt: skip
    if uid := os.geteuid():
        lingers = ["loginctl", "show-user", str(uid), "--property=Linger", "--value"]
        if _run(lingers, may_fail="").stdout.strip() != b"yes":
            see.append("it stops when you log out, unless you run `loginctl enable-linger`")

    def run(*words: str) -> TimerStep:
        command = [*systemctl, *words]
        return TimerStep(f"run {' '.join(command)}", "", partial(_run, command))

    steps = []
    for file, text in zip(files, _units(job), strict=True):
        wanted, present = None if remove else text, _read(file)
        if present is None and os.path.lexists(file):
            present = ""  # such as the link of a masked unit
        steps += _changing(str(file), present, wanted, partial(_write, file, wanted))
    if remove and steps:
        stop = [run("disable", "--now", timer)] if os.path.lexists(files[1]) else []
        return TimerPlan([*stop, *steps, run("daemon-reload")])
    if not remove and (steps or _run([*systemctl, "is-active", timer], may_fail="").returncode):
        # A timer that runs takes its new times when it is restarted.
        steps += [run("daemon-reload"), run("enable", timer), run("restart", timer)]
    return TimerPlan(steps, see)


def _edit_crontab(profile: str, old: str | None, new: str | None) -> None:
    """Replace the line of a profile. Raises OutputError if it has changed since the question."""
    crontab = re.sub(r"(?<=[^\n])\Z", "\n", _read_crontab())
    if _line_of(crontab, profile) != old:
        hint = "look at `crontab -l`, then run this again"
        raise OutputError("the crontab was changed meanwhile, and is left as it is", hint=hint)
    lines = crontab.split("\n")
    at = len(lines) - 1 if old is None else lines.index(old)
    lines[at : at + (old is not None)] = [] if new is None else [new]
    _run(["crontab", "-"], "\n".join(lines))


def _changing(
    name: str, present: str | None, wanted: str | None, do: Callable[[], object]
) -> list[TimerStep]:
    """The step for a text that is not as it should be. Raises NegativeAnswer if it is not ours."""
    if present == wanted:
        return []
    # Ours is as some version of dkimctl has written it.
    if present is not None and not (re.search(_SUM, present) and present == _sealed(present)):
        raise _not_ours(name)
    return [TimerStep(f"{'delete' if wanted is None else 'write'} {name}", wanted or "", do)]


def _not_ours(place: str) -> NegativeAnswer:
    text = f"the timer is edited, or not by `dkimctl timer`, and left as it is: {printable(place)}"
    return NegativeAnswer(text, hint="keep it as it is, or remove it and run this again")


def _read(file: Path) -> str | None:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace")
    return None


def _write(file: Path, text: str | None) -> None:
    hint = "check the permissions and the space there"
    with os_errors_as(OutputError, f"cannot write {printable(str(file))}", hint=hint):
        if text is None:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_writer(file, mode=0o644) as stream:
            stream.write(text)


def _units(job: Job) -> Sequence[str]:
    """The texts of service and timer."""
    unit = f"[Unit]\nDescription=Replace DKIM keys that are due (profile {job.profile})\n"
    unit += f"Documentation={TIMERS_DOC}\n"
    network = "Wants=network-online.target\nAfter=network-online.target nss-lookup.target\n"
    program, *others = map(_unit_word, job.words)  # in others, a variable would be replaced
    command = " ".join([program, *(word.replace("$", "$$") for word in others)])
    variables = [_unit_word(f"{name}={text}") for name, text in job.variables.items()]
    settings = [f"ExecStart={command}", *(f"Environment={word}" for word in variables),
                f"EnvironmentFile=-{str(job.secrets).replace('%', '%%')}"]  # fmt: skip
    service = "\n".join(["[Service]\nType=oneshot", *settings, "UMask=0077\nTimeoutStartSec=1h\n"])
    times = f"[Timer]\nOnCalendar=*-*-* 00/{_HOURS}:00\nRandomizedDelaySec=1h\nPersistent=true\n"
    texts = {
        "service": f"{unit}{network if os.geteuid() == 0 else ''}\n{service}",
        "timer": f"{unit}\n{times}\n[Install]\nWantedBy=timers.target\n",
    }
    edit = f"{' '.join(_systemctl())} edit dkimctl-rotate-{job.profile}"
    head = f"# Written by dkimctl timer {job.profile} ({_NO_SUM}).\n# To change it: {edit}"
    return [_sealed(f"{head}.{kind}\n{text}") for kind, text in texts.items()]


def _unit_word(word: str) -> str:
    escaped = re.sub(r'(["\\])', r"\\\1", word).replace("%", "%%")
    return escaped if re.fullmatch(r"[\w@%+=:,./$-]+", escaped) else f'"{escaped}"'


def _shell_command(job: Job) -> str:
    file = shlex.quote(str(job.secrets))
    variables = " ".join(f"{name}={shlex.quote(text)}" for name, text in job.variables.items())
    return f"set -a; [ ! -r {file} ] || . {file}; {variables} {shlex.join(job.words)}"


def _crontab_line(job: Job) -> str:
    command = _shell_command(job)
    # Another minute on each machine, and always the same on one.
    at = zlib.crc32(f"{os.uname().nodename} {command}".encode()) % (60 * _HOURS)
    times = f"{at % 60} {at // 60}-23/{_HOURS} * * *"
    command = command.replace("%", "\\%")  # a bare one ends it
    return _sealed(f"{times} {command} # dkimctl timer {job.profile} ({_NO_SUM})")


def _sealed(text: str) -> str:
    """The text with its own checksum, which is that of the text with zeros in its place."""
    unsealed = re.sub(_SUM, rf"\g<1>{_NO_SUM}", text, count=1)
    checksum = zlib.crc32(unsealed.encode("utf-8", "replace"))
    return re.sub(_SUM, rf"\g<1>{checksum:08x}", text, count=1)


def _line_of(crontab: str, profile: str) -> str | None:
    """The line of a profile's timer, or one by hand, for it or for whichever."""
    mark, lines = "# dkimctl timer ", re.findall(r"(?m)^(?![ \t]*#).+", crontab)
    ours = [line for line in lines if f"{mark}{profile} (" in line]
    command = rf"(?!.*{mark})[^#]*\bdkimctl\b[^#]*\brotate run\b"
    for line in filter(re.compile(command).match, lines):
        named = re.search(r"\s(?:--profile[ =]|-p ?)['\"]?([^\s'\"]+)", line)
        if named is None or named[1] == profile:
            ours.append(line)
    return next(iter(ours), None)


def _read_crontab() -> str:
    """The user's crontab; "" if there is none. Raises OutputError."""
    if not shutil.which("crontab"):
        return ""
    # The status is the same for one that is missing, and one that cannot be read.
    done = _run(["crontab", "-l"], may_fail="no crontab|no such file")
    return "" if done.returncode else done.stdout.decode("utf-8", "surrogateescape")


def _unit_files(profile: str, directory: Path) -> list[Path]:
    return [directory / f"dkimctl-rotate-{profile}.{kind}" for kind in ("service", "timer")]


def _own_units() -> Path:
    if os.geteuid() == 0:
        return SYSTEM_UNITS
    return platformdirs.user_config_path("systemd", appauthor=False) / "user"


def _systemctl() -> list[str]:
    return ["systemctl"] if os.geteuid() == 0 else ["systemctl", "--user"]


def _run(
    words: Sequence[str], text: str = "", *, may_fail: str = "(?!)"
) -> subprocess.CompletedProcess[bytes]:
    """Run a program of the system. Raises OutputError, unless it says what `may_fail` matches."""
    names = ("PATH", "HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    if (runtime := RUNTIME / f"user/{os.geteuid()}").is_dir():  # su leaves it out
        environment.setdefault("XDG_RUNTIME_DIR", str(runtime))
    try:
        done = subprocess.run(  # noqa: S603 - words of ours
            words, input=text.encode("utf-8", "surrogateescape"), capture_output=True,
            env=environment | {"LC_ALL": "C"}, timeout=30, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or "no answer within 30 s"
        done = subprocess.CompletedProcess(words, 127, b"", reason.encode())
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode and not re.search(may_fail, said, re.IGNORECASE):
        reason = printable((said or "it does not say why").splitlines()[0])
        hint = "run it by hand to see why; then run the same command of dkimctl again"
        raise OutputError(f"`{shlex.join(words)}` failed: {reason}", hint=hint)
    return done
