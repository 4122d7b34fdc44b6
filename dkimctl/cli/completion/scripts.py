"""The completion scripts of the shells, and where each belongs.

All ask the program that is typed, or else the `dkimctl` of the PATH, as `protocol.py` says.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Shell(StrEnum):
    """The supported shells."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Installation(NamedTuple):
    """How to install a script for one user."""

    place: str  # where it is for, after the name of the shell
    commands: tuple[str, ...]


_BASH_DIRECTORY = "~/.local/share/bash-completion/completions"
INSTALLATIONS = {
    Shell.BASH: [
        Installation(
            ", with the package bash-completion",
            (
                f"mkdir -p {_BASH_DIRECTORY}",
                f"dkimctl completion bash > {_BASH_DIRECTORY}/dkimctl",
            ),
        ),
        Installation(
            ", without it",
            (
                "dkimctl completion bash > ~/.dkimctl-completion.bash",
                "echo '. ~/.dkimctl-completion.bash' >> ~/.bashrc",
            ),
        ),
    ],
    Shell.ZSH: [
        Installation(
            ", if ~/.zshrc has no compinit yet",
            (
                "mkdir -p ~/.zfunc",
                "dkimctl completion zsh > ~/.zfunc/_dkimctl",
                "echo 'fpath=(~/.zfunc $fpath); autoload -U compinit; compinit' >> ~/.zshrc",
            ),
        ),
        Installation(
            ", if it has one",
            ("echo 'source <(dkimctl completion zsh)' >> ~/.zshrc",),
        ),
    ],
    Shell.FISH: [
        Installation(
            "",
            (
                "mkdir -p ~/.config/fish/completions",
                "dkimctl completion fish > ~/.config/fish/completions/dkimctl.fish",
            ),
        )
    ],
}

_BASH = r"""# Completion of dkimctl in bash. `dkimctl completion --help` says where to put it.

_dkimctl_completion() {
    local program=${1/#\~/$HOME} files= candidate
    type -P "$program" >/dev/null || program=dkimctl
    COMPREPLY=()
    {
        IFS= read -r files
        while IFS= read -r candidate; do
            COMPREPLY[${#COMPREPLY[@]}]=$candidate
        done
    } < <(
        _DKIMCTL_COMPLETE=bash \
        _DKIMCTL_COMPLETE_LINE=${COMP_LINE:0:COMP_POINT} \
        _DKIMCTL_COMPLETE_WORDBREAKS=$COMP_WORDBREAKS \
            command "$program" 2>/dev/null </dev/null
    )
    # Without candidates, readline completes file names, unless this says otherwise (bash 4).
    case $files in
        none) compopt +o default ;;
        directories) compopt +o default -o dirnames ;;
    esac 2>/dev/null
    return 0
}

complete -o default -F _dkimctl_completion dkimctl
"""

_ZSH = r"""#compdef dkimctl
# Completion of dkimctl in zsh. `dkimctl completion --help` says where to put it.

_dkimctl() {
    local program=${${(Q)words[1]}/#\~/$HOME} files
    local -a candidates
    whence -p -- "$program" >/dev/null || program=dkimctl
    candidates=("${(@f)$(
        _DKIMCTL_COMPLETE=zsh \
        _DKIMCTL_COMPLETE_LINE="${(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX" \
            command "$program" 2>/dev/null </dev/null
    )}")
    files=$candidates[1]
    shift candidates
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    local status_=1
    (( $#candidates )) && _describe -t values 'dkimctl' candidates && status_=0
    case $files in
        files) _files && status_=0 ;;
        specs) _files -g '*.(yaml|yml|json|csv)' && status_=0 ;;
        directories) _files -/ && status_=0 ;;
    esac
    return status_
}

# A file in fpath is itself the function, at its first call; one that is sourced only defines it.
if [[ $funcstack[1] == _dkimctl ]]; then
    _dkimctl "$@"
else
    compdef _dkimctl dkimctl
fi
"""

_FISH = r"""# Completion of dkimctl in fish. `dkimctl completion --help` says where to put it.

# Asks for candidates; fails where fish is to complete file names itself.
function __dkimctl_ask
    set -l program (commandline -opc)[1]
    command -q -- "$program"; or set program dkimctl
    set -l line (commandline -cp | string collect)
    set -g __dkimctl_candidates (
        env _DKIMCTL_COMPLETE=fish _DKIMCTL_COMPLETE_LINE="$line" $program 2>/dev/null </dev/null)
    set -g __dkimctl_files $__dkimctl_candidates[1]
    set -e __dkimctl_candidates[1]
    test "$__dkimctl_files" != files
end

function __dkimctl_show
    test -n "$__dkimctl_candidates"; and printf '%s\n' $__dkimctl_candidates
    set -l token (commandline -ct)
    switch "$__dkimctl_files"
        case specs
            # What fish completes for a command that it does not know: files.
            complete -C "__dkimctl_files $token" |
                string match -r -- '.*(?:/|\.ya?ml|\.json|\.csv)$'
        case directories
            set -l option (string match -r -- '^--[a-z-]+=' "$token")
            __fish_complete_directories (string replace -- "$option" '' "$token") '' |
                string replace -r -- '^' "$option"
    end
end

complete --command dkimctl --no-files --condition __dkimctl_ask --arguments '(__dkimctl_show)'
"""

SCRIPTS = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}
