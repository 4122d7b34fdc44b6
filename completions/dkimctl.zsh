#compdef dkimctl
# Completion of dkimctl in zsh. `dkimctl completion --help` says where to put it.
# `dkimctl completion zsh` writes it from the command tree.

# Whether an option takes a value: the same in all commands.
_dkimctl_takes_value() {
    case $1 in
        --assign-selector | --auth-url | --base-url | --batch-size | --ca-bundle | --class | --client | --client-id | --color | --concurrency | --config | --contact | --credential-store | --data | --database | --dns | --domain | --faults | --filter | --format | --from | --group | --host | --html | --input | --key-file | --key-len | --key-pool | --language | --log-format | --max-age-of-check | --max-domains | --max-in-flight | --max-wait | --metrics-from | --older-than | --origin | --output | --output-dir | --overlap | --port | --profile | --provider | --proxy | --purge-before | --selector | --server | --since | --sort-by | --start-in | --third-party-client | --threads | --timeout | --trusted-proxy | --ttl | --wait | --warn-within | --workers | --zone | -f | -o | -p) ;;
        *) return 1 ;;
    esac
}

# What can follow a command: other commands, options by their keys, and arguments.
_dkimctl_command() {
    subcommands= option_keys= arguments=() repeats= help=
    case $1 in
        '')
            subcommands='init doctor login logout status profile list overview register show-dns publish handoff check-dns verify rotate ledger token api schema completion serve service'
            option_keys='profile sandbox config color verbose quiet version help'
            help='Register domains for DKIM signing, publish their DNS records, check that the right keys are...' ;;
        init)
            option_keys='domain output no-config dns server key-file class auth-url base-url client-id credential-store profile sandbox config color verbose quiet help'
            help='Write a first config file and a first spec file.' ;;
        doctor)
            option_keys='offline format auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help'
            help='Check the set-up: what is wrong, and what to do about it.' ;;
        login)
            option_keys='secret-stdin allow-plaintext-keyring auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help'
            help='Log in: verify a client ID and secret, and store them.' ;;
        logout)
            option_keys='yes profile sandbox config color verbose quiet help'
            help='Log out: delete the secret and token of a profile.' ;;
        status)
            option_keys='format auth-url base-url client-id credential-store batch-size concurrency timeout max-wait ca-bundle proxy profile sandbox config color verbose quiet help'
            help='Show the profile, and where each of its settings comes from.' ;;
        profile)
            subcommands='list use delete'
            option_keys='profile sandbox config color verbose quiet help'
            help='List the profiles, choose one, or delete one.' ;;
        'profile list')
            option_keys='format profile sandbox config color verbose quiet help'
            help='List the profiles, with their accounts, and which one is used.' ;;
        'profile use')
            option_keys='profile sandbox config color verbose quiet help'
            help='Use a profile from now on, where none is named.'
            arguments=(@profiles) ;;
        'profile delete')
            option_keys='yes profile sandbox config color verbose quiet help'
            help='Delete a profile: its login, secret and token.'
            arguments=(@profiles) ;;
        list)
            option_keys='filter sort-by reverse all wide format.2 output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            help='List the keys that are registered, one line each.'
            arguments=('@domains @specs') ;;
        overview)
            option_keys='format html base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            help='Show what is urgent, what comes this week and month, and how old the keys are.'
            arguments=('@domains @specs') ;;
        register)
            option_keys='domain.2 dry-run refresh assign-selector retry-unknown publish wait format.3 ttl origin zone find-zones provider output.2 output-dir wide.2 auth-url base-url client-id credential-store batch-size concurrency timeout max-wait ca-bundle proxy profile sandbox config color verbose quiet help'
            repeats=1
            help='Register the domains of spec files, and show their DNS records.'
            arguments=(@files) ;;
        show-dns)
            option_keys='from format.3 ttl origin zone find-zones provider output.2 output-dir wide.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            help='Show the DNS records of what is registered.'
            arguments=('@domains @specs') ;;
        publish)
            option_keys='dry-run.2 yes replace wait.2 check-access retired assume-successors format.4 output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            help='Put the records of what is registered into DNS.'
            arguments=('@domains @specs') ;;
        handoff)
            option_keys='format.5 language contact zone.2 provider.2 ttl retired.2 assume-successors output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            help='Write a sheet for whoever owns the DNS, with the records to add and how.'
            arguments=('@domains @specs') ;;
        check-dns)
            option_keys='from.2 server.2 resolver max-in-flight wait.3 expect-absent warn-within notify test-notice format.6 output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            help='Check that DNS has the registered records.'
            arguments=('@domains @specs') ;;
        verify)
            option_keys='server.2 resolver format output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            help='Verify the DKIM signatures of received mail, and compare their keys with the ledger.'
            arguments=(@files) ;;
        rotate)
            subcommands='run status'
            option_keys='older-than start-in selector key-len retired.3 format.7 zone.3 no-check max-age-of-check assume-successors output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            help='Print specs (YAML) for the successors of old keys.'
            arguments=('@domains @specs') ;;
        'rotate run')
            option_keys='dry-run.3 wait.4 format output.2 auth-url base-url client-id credential-store batch-size concurrency timeout max-wait ca-bundle proxy profile sandbox config color verbose quiet help'
            repeats=1
            help='Do everything that is due: replace old keys, publish, check, and remove retired records.'
            arguments=('@domains @specs') ;;
        'rotate status')
            option_keys='format.2 timeline output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            help='Show where each key is in its life, since when, and what comes next.'
            arguments=('@domains @specs') ;;
        ledger)
            subcommands='import forget'
            option_keys='profile sandbox config color verbose quiet help'
            help='Import registrations into the ledger, or forget retired ones.' ;;
        'ledger import')
            option_keys='base-url client-id profile sandbox config color verbose quiet help'
            help='Import the registrations of a saved result.'
            arguments=(@files) ;;
        'ledger forget')
            option_keys='force still-published assume-successors format.8 output.2 base-url client-id profile sandbox config color verbose quiet help'
            repeats=1
            help='Remove retired registrations from the ledger.'
            arguments=('@domains @specs') ;;
        token)
            option_keys='auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help'
            help='Print a valid access token.' ;;
        api)
            option_keys='input auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help'
            help='Send any bearer-protected request, and print the response.'
            arguments=('GET POST PUT PATCH DELETE' '') ;;
        schema)
            option_keys='color quiet help'
            repeats=1
            help='Print the JSON Schema of spec files, of the config file, or of what commands print as JSON.'
            arguments=('specs config output' 'register show-dns rotate ledger forget check-dns publish list status run overview handoff verify doctor profile service client create rotate-secret registration audit errors') ;;
        completion)
            option_keys='color quiet help'
            help='Print a shell'"'"'s completion script.'
            arguments=('bash zsh fish') ;;
        serve)
            option_keys='host port data max-domains threads workers key-pool faults log-format trusted-proxy metrics-from color quiet help'
            help='Run the embedded service over HTTP, until Ctrl-C.' ;;
        service)
            subcommands='client registration delivery export backup restore audit'
            option_keys='color quiet help'
            help='Manage the embedded service: its clients, registrations, deliveries and data.' ;;
        'service client')
            subcommands='create list disable enable delete rotate-secret'
            option_keys='color quiet help'
            help='Create, list, disable, enable and delete clients, and give them new secrets.' ;;
        'service client create')
            option_keys='data output.3 color quiet help'
            help='Create a client and print its ID and secret as JSON; the secret is not shown again.'
            arguments=('') ;;
        'service client list')
            option_keys='format data color quiet help'
            help='List the clients, one per line: ID, state, creation time.' ;;
        'service client disable')
            option_keys='data color quiet help'
            help='Disable a client: it still gets tokens, but requests with them are refused.'
            arguments=(@clients) ;;
        'service client enable')
            option_keys='data color quiet help'
            help='Enable a disabled client.'
            arguments=(@clients) ;;
        'service client delete')
            option_keys='data color quiet help'
            help='Delete a client permanently: it gets no more tokens; its registrations stay taken.'
            arguments=(@clients) ;;
        'service client rotate-secret')
            option_keys='overlap data output.3 color quiet help'
            help='Give a client a new secret and print it as JSON; it is not shown again.'
            arguments=(@clients) ;;
        'service registration')
            subcommands='list enable disable delete'
            option_keys='color quiet help'
            help='List, enable, disable and delete registrations.' ;;
        'service registration list')
            option_keys='client domain.3 format data color quiet help'
            help='List the registrations, one per line.' ;;
        'service registration enable')
            option_keys='data color quiet help'
            help='Enable a disabled registration.'
            arguments=('' '') ;;
        'service registration disable')
            option_keys='data color quiet help'
            help='Disable a registration: `service export` then leaves its key out.'
            arguments=('' '') ;;
        'service registration delete')
            option_keys='yes data color quiet help'
            help='Delete a registration and its private key.'
            arguments=('' '') ;;
        'service delivery')
            subcommands=add
            option_keys='color quiet help'
            help='Add deliveries, which a client can cancel.' ;;
        'service delivery add')
            option_keys='data color quiet help'
            help='Add a delivery for a client and print its ID, for `dkimctl api DELETE /send/ID`.'
            arguments=(@clients) ;;
        'service export')
            option_keys='format.9 output-dir.2 group third-party-client data color quiet help'
            help='Write the private keys in effect, and the files that tell a signer to use them.' ;;
        'service backup')
            option_keys='data color quiet help'
            help='Back up the service'"'"'s data to a new file, also while the service runs.'
            arguments=(@files) ;;
        'service restore')
            option_keys='data color quiet help'
            help='Restore a backup to a new data file, or to an empty PostgreSQL database.'
            arguments=(@files) ;;
        'service audit')
            option_keys='since purge-before format data color quiet help'
            help='Show the audit log, one action per line: time, actor, action, object.' ;;
    esac
}

# An option by its key: its names, and where its values come from.
_dkimctl_option() {
    names= source= repeatable= help=
    case $1 in
        profile) names='--profile -p' source=@profiles help='Profile to use.' ;;
        sandbox) names=--sandbox help='Use the embedded service: no account, no network.' ;;
        config) names=--config source=@files help='Config file to read.' ;;
        color) names=--color source='auto always never' help='auto, always, never (default: auto, on a terminal).' ;;
        verbose) names='--verbose -v' help='Log requests and DNS queries; show lists in full.' ;;
        quiet) names='--quiet -q' help='Show only warnings and errors.' ;;
        version) names='--version -V' help='Show the version and exit.' ;;
        help) names='--help -h' help='Show this message and exit.' ;;
        domain) names=--domain repeatable=1 help='A signing domain; repeatable.' ;;
        output) names='--output -o' source=@files help='Spec file to write.' ;;
        no-config) names=--no-config help='Write only the spec file.' ;;
        dns) names=--dns source='hand rfc2136 octodns' help='hand, rfc2136, octodns (default: hand).' ;;
        server) names=--server help='The primary server, for dynamic updates.' ;;
        key-file) names=--key-file source=@files help='File of the TSIG key that signs them.' ;;
        class) names=--class help='Class of the octoDNS provider.' ;;
        auth-url) names=--auth-url help='URL that issues access tokens.' ;;
        base-url) names=--base-url help='URL of the service.' ;;
        client-id) names=--client-id help='Client ID.' ;;
        credential-store) names=--credential-store source='keyring file' help='keyring or file, for secret and token.' ;;
        offline) names=--offline help='Leave out what needs the network.' ;;
        format) names='--format -f' source='table json' help='table, json.' ;;
        timeout) names=--timeout help='Longest wait for an answer (default: 30s).' ;;
        ca-bundle) names=--ca-bundle source=@files help='PEM file of CAs to trust, not the system'"'"'s.' ;;
        proxy) names=--proxy help='Proxy for all requests.' ;;
        secret-stdin) names=--secret-stdin help='Read the client secret from standard input.' ;;
        allow-plaintext-keyring) names=--allow-plaintext-keyring help='Store the secret even in an unencrypted keyring.' ;;
        yes) names='--yes -y' help='Answer the question with yes, without asking.' ;;
        batch-size) names=--batch-size help='Domains per request (default: 50).' ;;
        concurrency) names=--concurrency help='Parallel requests (default: 8).' ;;
        max-wait) names=--max-wait help='Longest Retry-After to honour (default: 5m).' ;;
        filter) names=--filter repeatable=1 help='Show only such keys, as in state=missing.' ;;
        sort-by) names=--sort-by help='Sort by a field, such as due.' ;;
        reverse) names=--reverse help='Sort the other way round.' ;;
        all) names='--all -a' help='Show keys that were removed, too.' ;;
        wide) names='--wide -w' help='Add what comes next, and the FQDN.' ;;
        format.2) names='--format -f' source='table json csv' help='table, json, csv (default: table).' ;;
        output.2) names='--output -o' source=@files help='Write the result to this file, atomically; `-` is stdout.' ;;
        html) names=--html source=@files help='Write it as a page that needs no other file.' ;;
        domain.2) names=--domain repeatable=1 help='Also register this signing domain, with the profile'"'"'s defaults; repeatable.' ;;
        dry-run) names='--dry-run -n' help='Show what would be done, and send nothing.' ;;
        refresh) names=--refresh help='Also send entries that are already in the ledger.' ;;
        assign-selector) names=--assign-selector help='Selector for entries without one, such as s%Y%m; {domain} is a short hash of the domain.' ;;
        retry-unknown) names=--retry-unknown help='Retry unanswered entries that have no selector; may create duplicates.' ;;
        publish) names=--publish help='Then publish the records, and check DNS, without asking.' ;;
        wait) names=--wait help='With --publish: longest time to wait until DNS has the records (default: 2m).' ;;
        format.3) names='--format -f' source='table json jsonl csv markdown zone nsupdate octodns dnscontrol route53 powerdns terraform value' help='table, json, jsonl, csv, markdown, zone, nsupdate, octodns, dnscontrol, route53, powerdns, terraform, value (default: table on a terminal, else zone).' ;;
        ttl) names=--ttl help='TTL of the records.' ;;
        origin) names=--origin help='Write names relative to this zone (format zone).' ;;
        zone) names=--zone repeatable=1 help='Zone of your DNS; repeatable. A record goes into the longest zone that contains it.' ;;
        find-zones) names=--find-zones help='Look up the zones in DNS, by their SOA records.' ;;
        provider) names=--provider source='route53 cloudflare google' help='Provider of the terraform resources: route53, cloudflare, google (default: route53).' ;;
        output-dir) names=--output-dir source=@directories help='Write one file per zone to this directory.' ;;
        wide.2) names=--wide help='Add the service'"'"'s result code and message to the table.' ;;
        from) names=--from source=@files help='Read the registrations in a file instead of those in the ledger: JSON that a command of dkimctl printed, or a response of the service; `-` is standard input.' ;;
        dry-run.2) names='--dry-run -n' help='Show what would be changed; 1 if there is something.' ;;
        replace) names=--replace help='Also replace TXT records that are not DKIM key records.' ;;
        wait.2) names=--wait help='Then check DNS until it has the records, for at most this long, such as 30m.' ;;
        check-access) names=--check-access help='Tell what can be read and written; nothing is changed.' ;;
        retired) names=--retired help='Remove the old records that `rotate --retired` lists.' ;;
        assume-successors) names=--assume-successors help='Assume that newer keys replace older ones, where that is not recorded.' ;;
        format.4) names='--format -f' source='table json markdown' help='table, json, markdown.' ;;
        format.5) names='--format -f' source='text html markdown json' help='text, html, markdown, json (default: by the suffix of --output, else text).' ;;
        language) names=--language source='en ja' help='en, ja (default: en).' ;;
        contact) names=--contact help='Whom to tell when it is done.' ;;
        zone.2) names=--zone repeatable=1 help='Zone of the DNS; repeatable. Then DNS is not asked.' ;;
        provider.2) names=--provider source='azure cloudflare dnsimple godaddy google ionos linode namecheap ovh route53 sakura' help='DNS provider, such as cloudflare (default: told by the zone'"'"'s name servers).' ;;
        retired.2) names=--retired help='Records to delete, of keys that have been replaced.' ;;
        from.2) names=--from source=@files help='Check the registrations in a file instead of those in the ledger: JSON that a command of dkimctl printed, or a response of the service; `-` is standard input.' ;;
        server.2) names=--server repeatable=1 help='Ask only this server; repeatable (default: every authoritative server).' ;;
        resolver) names=--resolver help='Ask only the system'"'"'s resolver, whose cache may be out of date.' ;;
        max-in-flight) names=--max-in-flight help='Parallel queries to one server, 1 to 1000.' ;;
        wait.3) names=--wait help='Check again until all records are as expected, for at most this long, such as 30m.' ;;
        expect-absent) names=--expect-absent help='Expect the records to be gone from DNS.' ;;
        warn-within) names=--warn-within help='Warn about unpublished records whose signing starts within this time.' ;;
        notify) names=--notify help='Tell what has become worse or better since the last run: see notify in the config file.' ;;
        test-notice) names=--test-notice help='Only send a notice, as a test: see notify.' ;;
        format.6) names='--format -f' source='table json jsonl csv prometheus nagios' help='table, json, jsonl, csv, prometheus, nagios (default: table).' ;;
        older-than) names=--older-than help='Replace keys older than this; 0d: all keys (default: `max_age` of `rotation` in the config file, or 180d).' ;;
        start-in) names=--start-in help='Time until signing with the new keys starts (default: 3d).' ;;
        selector) names=--selector help='Template of the new selectors; {domain} is a short hash of the domain (default: s%Y%m%d).' ;;
        key-len) names=--key-len source='1024 2048' help='Length of the new keys: 1024 or 2048 (default: 2048).' ;;
        retired.3) names=--retired help='List the old records that may be removed from DNS instead.' ;;
        format.7) names='--format -f' source='table json nsupdate' help='With --retired: table, json, nsupdate (default: table on a terminal, else json).' ;;
        zone.3) names=--zone repeatable=1 help='With --format nsupdate: a zone of your DNS; repeatable.' ;;
        no-check) names=--no-check help='With --retired: rely on earlier checks of the new records, and ask no server.' ;;
        max-age-of-check) names=--max-age-of-check help='With --no-check: the longest age of those checks (default: 24h).' ;;
        dry-run.3) names='--dry-run -n' help='Show what is due, and do nothing.' ;;
        wait.4) names=--wait help='Check again until all servers have what was changed, for at most this long.' ;;
        timeline) names=--timeline help='Draw the life of each key, with today as a line.' ;;
        force) names=--force help='Forget the whole selection, retired or not.' ;;
        still-published) names=--still-published help='Also forget those whose records may still be in DNS.' ;;
        format.8) names='--format -f' source='table json' help='table, json (default: table on a terminal, else json).' ;;
        input) names=--input source=@files help='File with the request body; `-` is standard input.' ;;
        host) names=--host help='Address to listen on; 0.0.0.0: all IPv4 addresses.' ;;
        port) names=--port help='Port to listen on; 0: a free one.' ;;
        data) names='--data --database' source=@files help='Data of the service: a file (default: in your data directory), or the URL of a PostgreSQL database.' ;;
        max-domains) names=--max-domains help='Most domains in one request.' ;;
        threads) names=--threads help='Requests that each process answers at the same time, 1 to 64.' ;;
        workers) names=--workers help='Processes, 1 to 64; not on Windows.' ;;
        key-pool) names=--key-pool help='Keys of each length to make ahead, while there is nothing else to do.' ;;
        faults) names=--faults source=@files help='Inject faults into registration requests as described in FILE, to test clients.' ;;
        log-format) names=--log-format source='text json' help='Format of the log on stderr: text or json; --quiet leaves out the requests.' ;;
        trusted-proxy) names=--trusted-proxy repeatable=1 help='IP address or network of a proxy whose X-Forwarded-For to believe; may be repeated.' ;;
        metrics-from) names=--metrics-from repeatable=1 help='IP address or network that may read /metrics (default: this machine); may be repeated.' ;;
        output.3) names='--output -o' source=@files help='Write the secret to this new file, which only you can read, and print the ID alone.' ;;
        overlap) names=--overlap help='How long the old secret stays valid, such as 12h; 0s ends it at once.' ;;
        client) names=--client source=@clients help='List those of this client.' ;;
        domain.3) names=--domain help='List those of this signing domain.' ;;
        format.9) names='--format -f' source='opendkim rspamd' help='opendkim, rspamd.' ;;
        output-dir.2) names=--output-dir source=@directories help='Write the files to this directory.' ;;
        group) names=--group help='Let members of this group read the files, too (default: only you).' ;;
        third-party-client) names=--third-party-client source=@clients help='Sign mail of domains without a key with the registration of this client that is marked `default` (default: the only client'"'"'s, if there is only one).' ;;
        since) names=--since help='Only actions since this day (in UTC) or time.' ;;
        purge-before) names=--purge-before help='Delete actions before this day (in UTC) or time from the log; print nothing.' ;;
    esac
}

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
