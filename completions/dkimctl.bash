# Completion of dkimctl in bash. `dkimctl completion --help` says where to put it.
# `dkimctl completion bash` writes it from the command tree.

# Whether an option takes a value: the same in all commands.
_dkimctl_takes_value() {
    case $1 in
        --assign-selector | --auth-url | --base-url | --batch-size | --ca-bundle | --class | --client | --client-id | --color | --concurrency | --config | --contact | --credential-store | --data | --database | --dns | --domain | --faults | --filter | --format | --from | --group | --host | --html | --input | --key-file | --key-len | --key-pool | --language | --log-format | --max-age-of-check | --max-domains | --max-in-flight | --max-wait | --metrics-from | --older-than | --origin | --output | --output-dir | --overlap | --port | --profile | --provider | --proxy | --purge-before | --selector | --server | --since | --sort-by | --start-in | --third-party-client | --threads | --timeout | --trusted-proxy | --ttl | --wait | --warn-within | --workers | --zone | -f | -o | -p) ;;
        *) return 1 ;;
    esac
}

# What can follow a command: other commands, options by their keys, and arguments.
_dkimctl_command() {
    subcommands= option_keys= arguments=() repeats=
    case $1 in
        '')
            subcommands='init doctor login logout status profile list overview register show-dns publish handoff check-dns verify rotate ledger token api schema completion serve service'
            option_keys='profile sandbox config color verbose quiet version help' ;;
        init)
            option_keys='domain output no-config dns server key-file class auth-url base-url client-id credential-store profile sandbox config color verbose quiet help' ;;
        doctor)
            option_keys='offline format auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help' ;;
        login)
            option_keys='secret-stdin allow-plaintext-keyring auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help' ;;
        logout)
            option_keys='yes profile sandbox config color verbose quiet help' ;;
        status)
            option_keys='format auth-url base-url client-id credential-store batch-size concurrency timeout max-wait ca-bundle proxy profile sandbox config color verbose quiet help' ;;
        profile)
            subcommands='list use delete'
            option_keys='profile sandbox config color verbose quiet help' ;;
        'profile list')
            option_keys='format profile sandbox config color verbose quiet help' ;;
        'profile use')
            option_keys='profile sandbox config color verbose quiet help'
            arguments=(@profiles) ;;
        'profile delete')
            option_keys='yes profile sandbox config color verbose quiet help'
            arguments=(@profiles) ;;
        list)
            option_keys='filter sort-by reverse all wide format.2 output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            arguments=('@domains @specs') ;;
        overview)
            option_keys='format html base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            arguments=('@domains @specs') ;;
        register)
            option_keys='domain.2 dry-run refresh assign-selector retry-unknown publish wait format.3 ttl origin zone find-zones provider output.2 output-dir wide.2 auth-url base-url client-id credential-store batch-size concurrency timeout max-wait ca-bundle proxy profile sandbox config color verbose quiet help'
            repeats=1
            arguments=(@files) ;;
        show-dns)
            option_keys='from format.3 ttl origin zone find-zones provider output.2 output-dir wide.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            arguments=('@domains @specs') ;;
        publish)
            option_keys='dry-run.2 yes replace wait.2 check-access retired assume-successors format.4 output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            arguments=('@domains @specs') ;;
        handoff)
            option_keys='format.5 language contact zone.2 provider.2 ttl retired.2 assume-successors output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            arguments=('@domains @specs') ;;
        check-dns)
            option_keys='from.2 server.2 resolver max-in-flight wait.3 expect-absent warn-within notify test-notice format.6 output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            arguments=('@domains @specs') ;;
        verify)
            option_keys='server.2 resolver format output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            arguments=(@files) ;;
        rotate)
            subcommands='run status'
            option_keys='older-than start-in selector key-len retired.3 format.7 zone.3 no-check max-age-of-check assume-successors output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            arguments=('@domains @specs') ;;
        'rotate run')
            option_keys='dry-run.3 wait.4 format output.2 auth-url base-url client-id credential-store batch-size concurrency timeout max-wait ca-bundle proxy profile sandbox config color verbose quiet help'
            repeats=1
            arguments=('@domains @specs') ;;
        'rotate status')
            option_keys='format.2 timeline output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            arguments=('@domains @specs') ;;
        ledger)
            subcommands='import forget'
            option_keys='profile sandbox config color verbose quiet help' ;;
        'ledger import')
            option_keys='base-url client-id profile sandbox config color verbose quiet help'
            arguments=(@files) ;;
        'ledger forget')
            option_keys='force still-published assume-successors format.8 output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            arguments=('@domains @specs') ;;
        token)
            option_keys='auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help' ;;
        api)
            option_keys='input auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help'
            arguments=('GET POST PUT PATCH DELETE' '') ;;
        schema)
            option_keys='color quiet help'
            repeats=1
            arguments=('specs config output' 'register show-dns rotate ledger forget check-dns publish list status run overview handoff verify doctor profile service client create rotate-secret registration audit errors') ;;
        completion)
            option_keys='color quiet help'
            arguments=('bash zsh fish') ;;
        serve)
            option_keys='host port data max-domains threads workers key-pool faults log-format trusted-proxy metrics-from color quiet help' ;;
        service)
            subcommands='client registration delivery export backup restore audit'
            option_keys='color quiet help' ;;
        'service client')
            subcommands='create list disable enable delete rotate-secret'
            option_keys='color quiet help' ;;
        'service client create')
            option_keys='data output.3 color quiet help'
            arguments=('') ;;
        'service client list')
            option_keys='format data color quiet help' ;;
        'service client disable')
            option_keys='data color quiet help'
            arguments=(@clients) ;;
        'service client enable')
            option_keys='data color quiet help'
            arguments=(@clients) ;;
        'service client delete')
            option_keys='data color quiet help'
            arguments=(@clients) ;;
        'service client rotate-secret')
            option_keys='overlap data output.3 color quiet help'
            arguments=(@clients) ;;
        'service registration')
            subcommands='list enable disable delete'
            option_keys='color quiet help' ;;
        'service registration list')
            option_keys='client domain.3 format data color quiet help' ;;
        'service registration enable')
            option_keys='data color quiet help'
            arguments=('' '') ;;
        'service registration disable')
            option_keys='data color quiet help'
            arguments=('' '') ;;
        'service registration delete')
            option_keys='yes data color quiet help'
            arguments=('' '') ;;
        'service delivery')
            subcommands=add
            option_keys='color quiet help' ;;
        'service delivery add')
            option_keys='data color quiet help'
            arguments=(@clients) ;;
        'service export')
            option_keys='format.9 output-dir.2 group third-party-client data color quiet help' ;;
        'service backup')
            option_keys='data color quiet help'
            arguments=(@files) ;;
        'service restore')
            option_keys='data color quiet help'
            arguments=(@files) ;;
        'service audit')
            option_keys='since purge-before format data color quiet help' ;;
    esac
}

# An option by its key: its names, and where its values come from.
_dkimctl_option() {
    names= source= repeatable=
    case $1 in
        profile) names='--profile -p' source=@profiles ;;
        sandbox) names=--sandbox ;;
        config) names=--config source=@files ;;
        color) names=--color source='auto always never' ;;
        verbose) names='--verbose -v' ;;
        quiet) names='--quiet -q' ;;
        version) names='--version -V' ;;
        help) names='--help -h' ;;
        domain) names=--domain repeatable=1 ;;
        output) names='--output -o' source=@files ;;
        no-config) names=--no-config ;;
        dns) names=--dns source='hand rfc2136 octodns' ;;
        server) names=--server ;;
        key-file) names=--key-file source=@files ;;
        class) names=--class ;;
        auth-url) names=--auth-url ;;
        base-url) names=--base-url ;;
        client-id) names=--client-id ;;
        credential-store) names=--credential-store source='keyring file' ;;
        offline) names=--offline ;;
        format) names='--format -f' source='table json' ;;
        timeout) names=--timeout ;;
        ca-bundle) names=--ca-bundle source=@files ;;
        proxy) names=--proxy ;;
        secret-stdin) names=--secret-stdin ;;
        allow-plaintext-keyring) names=--allow-plaintext-keyring ;;
        yes) names='--yes -y' ;;
        batch-size) names=--batch-size ;;
        concurrency) names=--concurrency ;;
        max-wait) names=--max-wait ;;
        filter) names=--filter repeatable=1 ;;
        sort-by) names=--sort-by ;;
        reverse) names=--reverse ;;
        all) names='--all -a' ;;
        wide) names='--wide -w' ;;
        format.2) names='--format -f' source='table json csv' ;;
        output.2) names='--output -o' source=@files ;;
        html) names=--html source=@files ;;
        domain.2) names=--domain repeatable=1 ;;
        dry-run) names='--dry-run -n' ;;
        refresh) names=--refresh ;;
        assign-selector) names=--assign-selector ;;
        retry-unknown) names=--retry-unknown ;;
        publish) names=--publish ;;
        wait) names=--wait ;;
        format.3) names='--format -f' source='table json jsonl csv markdown zone nsupdate octodns dnscontrol route53 powerdns terraform value' ;;
        ttl) names=--ttl ;;
        origin) names=--origin ;;
        zone) names=--zone repeatable=1 ;;
        find-zones) names=--find-zones ;;
        provider) names=--provider source='route53 cloudflare google' ;;
        output-dir) names=--output-dir source=@directories ;;
        wide.2) names=--wide ;;
        from) names=--from source=@files ;;
        dry-run.2) names='--dry-run -n' ;;
        replace) names=--replace ;;
        wait.2) names=--wait ;;
        check-access) names=--check-access ;;
        retired) names=--retired ;;
        assume-successors) names=--assume-successors ;;
        format.4) names='--format -f' source='table json markdown' ;;
        format.5) names='--format -f' source='text html markdown json' ;;
        language) names=--language source='en ja' ;;
        contact) names=--contact ;;
        zone.2) names=--zone repeatable=1 ;;
        provider.2) names=--provider source='azure cloudflare dnsimple godaddy google ionos linode namecheap ovh route53 sakura' ;;
        retired.2) names=--retired ;;
        from.2) names=--from source=@files ;;
        server.2) names=--server repeatable=1 ;;
        resolver) names=--resolver ;;
        max-in-flight) names=--max-in-flight ;;
        wait.3) names=--wait ;;
        expect-absent) names=--expect-absent ;;
        warn-within) names=--warn-within ;;
        notify) names=--notify ;;
        test-notice) names=--test-notice ;;
        format.6) names='--format -f' source='table json jsonl csv prometheus nagios' ;;
        older-than) names=--older-than ;;
        start-in) names=--start-in ;;
        selector) names=--selector ;;
        key-len) names=--key-len source='1024 2048' ;;
        retired.3) names=--retired ;;
        format.7) names='--format -f' source='table json nsupdate' ;;
        zone.3) names=--zone repeatable=1 ;;
        no-check) names=--no-check ;;
        max-age-of-check) names=--max-age-of-check ;;
        dry-run.3) names='--dry-run -n' ;;
        wait.4) names=--wait ;;
        timeline) names=--timeline ;;
        force) names=--force ;;
        still-published) names=--still-published ;;
        format.8) names='--format -f' source='table json' ;;
        input) names=--input source=@files ;;
        host) names=--host ;;
        port) names=--port ;;
        data) names='--data --database' source=@files ;;
        max-domains) names=--max-domains ;;
        threads) names=--threads ;;
        workers) names=--workers ;;
        key-pool) names=--key-pool ;;
        faults) names=--faults source=@files ;;
        log-format) names=--log-format source='text json' ;;
        trusted-proxy) names=--trusted-proxy repeatable=1 ;;
        metrics-from) names=--metrics-from repeatable=1 ;;
        output.3) names='--output -o' source=@files ;;
        overlap) names=--overlap ;;
        client) names=--client source=@clients ;;
        domain.3) names=--domain ;;
        format.9) names='--format -f' source='opendkim rspamd' ;;
        output-dir.2) names=--output-dir source=@directories ;;
        group) names=--group ;;
        third-party-client) names=--third-party-client source=@clients ;;
        since) names=--since ;;
        purge-before) names=--purge-before ;;
    esac
}

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
