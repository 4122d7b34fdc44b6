# Completion of dkimctl in bash. `dkimctl completion --help` says where to put it.

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
