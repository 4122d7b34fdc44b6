# Completion of dkimctl in fish. `dkimctl completion --help` says where to put it.

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
