"""The completion functions of real shells, called without a terminal: many lines in one process."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

SCRIPTS = Path(__file__).parents[2] / "completions"
_END = "--end--"
# Each prints for each line the files that are offered, the words, and _END.
_BASH = """\
. "$1"
shift
compopt() {
    case $* in
        '-o dirnames') offers=directories ;;
        '+o default') offers=${offers:-none} ;;
    esac
}
COMP_WORDBREAKS=${WORD_BREAKS-$' \\t\\n"\\'@><=;|&(:'}
for line; do
    offers= COMP_LINE=$line COMP_POINT=${#line}
    _dkimctl_completion
    printf '%s\\n' "${offers:-files}" ${COMPREPLY[@]+"${COMPREPLY[@]}"} --end--
done
"""
# What zsh does before and after: it splits the line, and shows what begins with PREFIX.
_ZSH = """\
compdef() { : }
compset() { PREFIX=${PREFIX#*=} }
_files() { case $1 in (-/) kind=directories ;; (-g) kind=specs ;; (*) kind=files ;; esac }
_describe() {
    local each tab=$'\\t'
    for each in "${(@P)@[-1]}"; do
        [[ $each == ${(b)PREFIX}* ]] && shown+=("${each/:/$tab}")
    done
}
. $1
shift
for line; do
    kind=none shown=() words=("${(@z)line}")
    [[ $line == *' ' ]] && words+=('')
    CURRENT=$#words PREFIX=$words[-1]
    _dkimctl
    print -rl -- $kind "${(@)shown}" --end--
done
"""
_FISH = """\
source $argv[1]
for line in $argv[2..]
    set -l shown (complete -C $line)
    test -n "$__dkimctl_files"; or set __dkimctl_files none
    string replace @ '' $__dkimctl_files
    for each in $shown # without files, which fish adds itself
        contains -- $each $__dkimctl_offered; and printf '%s\\n' $each
    end
    echo --end--
end
"""
_DRIVERS = {
    "bash": ("--norc", "-c", _BASH, "bash"),
    "zsh": ("-f", "-c", _ZSH, "zsh"),
    "fish": ("--no-config", "-c", _FISH),
}


class Offered(NamedTuple):
    """What a shell offers at the end of a line."""

    files: str  # none, files, specs or directories; bash completes any files for specs
    words: list[str]  # with help after a tab, if the shell shows it

    @property
    def names(self) -> list[str]:
        """The words without help, sorted."""
        return sorted({word.partition("\t")[0] for word in self.words})


def complete(
    shell: str,
    path: str,
    lines: Sequence[str],
    *,
    home: Path,
    environment: Mapping[str, str],
) -> list[Offered]:
    """What the shell at `path` offers at the end of each line."""
    done = subprocess.run(
        [path, *_DRIVERS[shell], SCRIPTS / f"dkimctl.{shell}", *lines],
        cwd=home, env=environment, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stderr == "", done.stderr
    answers = done.stdout.split(f"{_END}\n")[:-1]
    assert len(answers) == len(lines), done.stdout
    offered = [Offered(files, words) for files, *words in map(str.splitlines, answers)]
    if shell != "fish":
        return offered
    # Where no word begins like the one that is typed, fish offers some that are similar.
    return [
        Offered(files, [word for word in words if word.startswith(line.rpartition(" ")[2])])
        for line, (files, words) in zip(lines, offered, strict=True)
    ]
