# Read the words before the cursor, which need not be valid yet.
_dkimctl_read() {
    local word
    local -a below
    _dkimctl_command ''
    for word in "${(@Q)words[2,CURRENT-1]}"; do
        if [[ -n $expects ]]; then
            _dkimctl_note "$expects" "$word"
            expects=
            continue
        fi
        case $ended$word in
            --) ended=1 ;;
            --*=*) _dkimctl_note "${word%%=*}" "${word#*=}" ;;
            --*) _dkimctl_takes_value "$word" && expects=$word || _dkimctl_note "$word" 1 ;;
            -?*) _dkimctl_read_letters "${word#-}" ;;
            *)
                below=(${=subcommands})
                if (( ! count && ${below[(Ie)$word]} )); then
                    command+=${command:+ }$word
                    _dkimctl_command "$command"
                else
                    (( ++count ))
                fi
                ;;
        esac
    done
}

# Read short options in one word; the last can have its value there, too.
_dkimctl_read_letters() {
    local rest=$1 name
    while [[ -n $rest ]]; do
        name=-${rest[1]} rest=${rest[2,-1]}
        if ! _dkimctl_takes_value "$name"; then
            _dkimctl_note "$name" 1
        elif [[ -n $rest ]]; then
            _dkimctl_note "$name" "$rest"
            rest=
        else
            expects=$name
        fi
    done
}

# An option and its value: those that matter for names, and that it was given.
_dkimctl_note() {
    given+=("$1")
    case $1 in
        --profile | -p) profile=$2 ;;
        --sandbox) sandbox=$2 ;;
        --config) config=$2 ;;
        --base-url) base_url=$2 ;;
        --client-id) client_id=$2 ;;
        --data | --database) data=$2 ;;
    esac
}

# Offer what can be at the cursor.
_dkimctl_offer() {
    local current=${(Q)PREFIX} at=$count nothing=1
    (( repeats && at >= $#arguments )) && at=$(( $#arguments - 1 ))
    if [[ -n $expects ]]; then
        _dkimctl_offer_values "$expects" "$current"
    elif [[ $count -gt 0 && $#arguments -eq 0 && -n $subcommands ]]; then
        return 1  # there is no such command
    elif [[ $ended$current == --*=* ]]; then
        compset -P 1 '*='
        _dkimctl_offer_values "${current%%=*}" "${current#*=}"
    elif [[ $ended$current == -* ]]; then
        _dkimctl_offer_options
    else
        if (( ! count )) && [[ -n $subcommands ]]; then
            _dkimctl_offer_commands && nothing=0
        fi
        if (( at < $#arguments )); then
            _dkimctl_offer_source "$arguments[at + 1]" "$current" && nothing=0
        elif [[ -z $subcommands$current ]]; then
            _dkimctl_offer_options && nothing=0
        fi
        return nothing
    fi
}

_dkimctl_offer_commands() {
    local name below=$subcommands subcommands option_keys arguments repeats help
    local -a offered
    for name in ${=below}; do
        _dkimctl_command "$command${command:+ }$name"
        offered+=("$name:$help")
    done
    _describe -t commands 'dkimctl command' offered
}

_dkimctl_offer_options() {
    local key
    local -a each offered
    for key in ${=option_keys}; do
        _dkimctl_option "$key"
        each=(${=names})
        [[ -z $repeatable && -n ${given:*each} ]] || offered+=("${(@)^each}:$help")
    done
    _describe -t options 'dkimctl option' offered
}

_dkimctl_offer_values() {
    local key
    local -a each
    for key in ${=option_keys}; do
        _dkimctl_option "$key"
        each=(${=names})
        (( ${each[(Ie)$1]} )) && _dkimctl_offer_source "$source" "$2" && return
    done
    return 1
}

_dkimctl_offer_source() {
    local each nothing=1
    local -a offered
    for each in ${=1}; do
        case $each in
            @files) _files && nothing=0 ;;
            @specs) _files -g '*.(yaml|yml|json|csv)' && nothing=0 ;;
            @directories) _files -/ && nothing=0 ;;
            @*) offered+=("${(@f)$(_dkimctl_ask "${each#@}" "$2")}") ;;
            *) offered+=("$each") ;;
        esac
    done
    offered=("${(@)${(@)offered:#}/$'\t'/:}")
    (( $#offered )) && _describe -t values 'dkimctl value' offered && nothing=0
    return nothing
}

# Ask for names: the program that is typed, or else the dkimctl of the PATH.
_dkimctl_ask() {
    local program=${${(Q)words[1]}/#\~/$HOME}
    whence -p -- "$program" >/dev/null || program=dkimctl
    _DKIMCTL_COMPLETE=$1 \
    _DKIMCTL_COMPLETE_START=$2 \
    _DKIMCTL_COMPLETE_PROFILE=$profile \
    _DKIMCTL_COMPLETE_SANDBOX=$sandbox \
    _DKIMCTL_COMPLETE_CONFIG=$config \
    _DKIMCTL_COMPLETE_BASE_URL=$base_url \
    _DKIMCTL_COMPLETE_CLIENT_ID=$client_id \
    _DKIMCTL_COMPLETE_DATA=$data \
        command "$program" 2>/dev/null </dev/null
}

_dkimctl() {
    local subcommands option_keys names source repeats repeatable help
    local command= count=0 expects= ended=
    local profile= sandbox= config= base_url= client_id= data=
    local -a arguments given
    _dkimctl_read
    _dkimctl_offer
}

# A file in fpath is itself the function, at its first call; one that is sourced only defines it.
if [[ $funcstack[1] == _dkimctl ]]; then
    _dkimctl "$@"
else
    compdef _dkimctl dkimctl
fi
