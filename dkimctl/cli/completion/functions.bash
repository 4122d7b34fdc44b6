# Split a line as bash does, but expand nothing: the words, then the word at the cursor. Readline
# keeps what is `kept` of that. `redirects`: it is the file of a redirection.
_dkimctl_split() {
    local line=$1 char quote= is_word= i
    words=() current= kept= redirects=
    for (( i = 0; i < ${#line}; i++ )); do
        char=${line:i:1}
        case $quote$char in
            \' | '"') quote=$char kept=$current is_word=1 ;;
            "''" | '""') quote= kept=$current ;;
            '"\')
                [[ ${line:i + 1:1} == [\"\\\$\`] ]] && (( ++i ))
                current+=${line:i:1}
                ;;
            [\'\"]?*) current+=$char ;;
            \\) (( ++i )); current+=${line:i:1} is_word=1 ;;
            [[:space:]\<\>\|\&\;])
                _dkimctl_end_word
                [[ $char == [\<\>] ]] && redirects=1
                ;;
            *)
                current+=$char is_word=1
                [[ $COMP_WORDBREAKS == *"$char"* ]] && kept=$current
                ;;
        esac
    done
}

_dkimctl_end_word() {
    [[ -n $is_word ]] || return
    if [[ -n $redirects ]]; then
        redirects=
    elif [[ $char != [\<\>] || $current == *[!0-9]* ]]; then  # not the 2 of 2>
        words[${#words[@]}]=$current
    fi
    current= kept= is_word=
}

# Read the words before the cursor, which need not be valid yet.
_dkimctl_read() {
    local i word
    _dkimctl_command ''
    for (( i = 1; i < ${#words[@]}; i++ )); do
        word=${words[i]}
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
                if (( ! count )) && [[ $word == [a-z]* && " $subcommands " == *" $word "* ]]; then
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
        name=-${rest:0:1} rest=${rest:1}
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
    given+="$1 "
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
    local prefix= start=$current name at=$count
    (( repeats && at >= ${#arguments[@]} )) && at=$(( ${#arguments[@]} - 1 ))
    if [[ -n $expects ]]; then
        _dkimctl_offer_values "$expects"
    elif (( count && ! ${#arguments[@]} )) && [[ -n $subcommands ]]; then
        return  # there is no such command
    elif [[ $ended$current == --*=* ]]; then
        prefix=${current%%=*}= start=${current#*=}
        _dkimctl_offer_values "${current%%=*}"
    elif [[ $ended$current == -* ]]; then
        _dkimctl_offer_options
    else
        if (( ! count )); then
            for name in $subcommands; do
                _dkimctl_add "$name"
            done
        fi
        if (( at < ${#arguments[@]} )); then
            _dkimctl_offer_source "${arguments[at]}"
        elif [[ -z $subcommands$current ]]; then
            _dkimctl_offer_options
        fi
    fi
}

_dkimctl_offer_options() {
    local key name
    for key in $option_keys; do
        _dkimctl_option "$key"
        for name in $names; do
            [[ -z $repeatable && $given == *" $name "* ]] && continue 2
        done
        for name in $names; do
            _dkimctl_add "$name"
        done
    done
}

_dkimctl_offer_values() {
    local key
    for key in $option_keys; do
        _dkimctl_option "$key"
        [[ " $names " == *" $1 "* ]] && _dkimctl_offer_source "$source"
    done
}

_dkimctl_offer_source() {
    local each name
    for each in $1; do
        case $each in
            @files | @specs) files=1 ;;
            @directories) compopt -o dirnames 2>/dev/null ;;
            @*)
                while IFS= read -r name; do
                    _dkimctl_add "${name%%$'\t'*}"
                done < <(_dkimctl_ask "${each#@}")
                ;;
            *) _dkimctl_add "$each" ;;
        esac
    done
}

# Ask for names: the program that is typed, or else the dkimctl of the PATH.
_dkimctl_ask() {
    local program=${words[0]/#\~/$HOME}
    type -P -- "$program" >/dev/null || program=dkimctl
    _DKIMCTL_COMPLETE=$1 \
    _DKIMCTL_COMPLETE_START=$start \
    _DKIMCTL_COMPLETE_PROFILE=$profile \
    _DKIMCTL_COMPLETE_SANDBOX=$sandbox \
    _DKIMCTL_COMPLETE_CONFIG=$config \
    _DKIMCTL_COMPLETE_BASE_URL=$base_url \
    _DKIMCTL_COMPLETE_CLIENT_ID=$client_id \
    _DKIMCTL_COMPLETE_DATA=$data \
        command "$program" 2>/dev/null </dev/null
}

# Offer a word if it begins with `start`, regardless of case.
_dkimctl_add() {
    local candidate=$prefix$1 differs
    shopt -s nocasematch
    [[ $1 == "$start"* ]]
    differs=$?
    shopt "-$nocasematch" nocasematch
    (( differs )) || COMPREPLY[${#COMPREPLY[@]}]=${candidate#"$kept"}
}

_dkimctl_completion() {
    local IFS=$' \t\n' nocasematch=u
    local words current kept redirects
    local subcommands option_keys arguments repeats names source repeatable
    local command= given=' ' count=0 expects= ended= files=
    local profile= sandbox= config= base_url= client_id= data=
    shopt -q nocasematch && nocasematch=s
    COMPREPLY=()
    _dkimctl_split "${COMP_LINE:0:COMP_POINT}"
    if [[ -z $redirects ]]; then
        _dkimctl_read
        _dkimctl_offer
        # Without candidates, readline completes file names, unless this says otherwise (bash 4).
        [[ -n $files ]] || compopt +o default 2>/dev/null
    fi
    return 0
}

complete -o default -F _dkimctl_completion dkimctl
