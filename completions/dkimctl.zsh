#compdef dkimctl
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
