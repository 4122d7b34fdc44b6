# Completion of dkimctl in fish. `dkimctl completion --help` says where to put it.
# `dkimctl completion fish` writes it from the command tree.

# The options that take a value: the same in all commands.
set -g __dkimctl_take_value --assign-selector --auth-url --base-url --batch-size --ca-bundle --class --client --client-id --color --concurrency --config --contact --credential-store --data --database --dns --domain --faults --filter --format --from --group --host --html --input --key-file --key-len --key-pool --language --log-format --max-age-of-check --max-domains --max-in-flight --max-wait --metrics-from --older-than --origin --output --output-dir --overlap --port --profile --provider --proxy --purge-before --selector --server --since --sort-by --start-in --third-party-client --threads --timeout --trusted-proxy --ttl --wait --warn-within --workers --zone -f -o -p

# command|commands below|keys of options|,argument,...|repeats the last|help
set -g __dkimctl_commands \
    '|init doctor login logout status profile list overview register show-dns publish handoff check-dns verify rotate ledger token api schema completion serve service|profile sandbox config color verbose quiet version help|||Register domains for DKIM signing, publish their DNS records, check that the right keys are...' \
    'init||domain output no-config dns server key-file class auth-url base-url client-id credential-store profile sandbox config color verbose quiet help|||Write a first config file and a first spec file.' \
    'doctor||offline format auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help|||Check the set-up: what is wrong, and what to do about it.' \
    'login||secret-stdin allow-plaintext-keyring auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help|||Log in: verify a client ID and secret, and store them.' \
    'logout||yes profile sandbox config color verbose quiet help|||Log out: delete the secret and token of a profile.' \
    'status||format auth-url base-url client-id credential-store batch-size concurrency timeout max-wait ca-bundle proxy profile sandbox config color verbose quiet help|||Show the profile, and where each of its settings comes from.' \
    'profile|list use delete|profile sandbox config color verbose quiet help|||List the profiles, choose one, or delete one.' \
    'profile list||format profile sandbox config color verbose quiet help|||List the profiles, with their accounts, and which one is used.' \
    'profile use||profile sandbox config color verbose quiet help|,@profiles||Use a profile from now on, where none is named.' \
    'profile delete||yes profile sandbox config color verbose quiet help|,@profiles||Delete a profile: its login, secret and token.' \
    'list||filter sort-by reverse all wide format.2 output.2 base-url client-id profile sandbox config color verbose quiet help|,@domains @specs|1|List the keys that are registered, one line each.' \
    'overview||format html base-url client-id profile sandbox config color verbose quiet help|,@domains @specs|1|Show what is urgent, what comes this week and month, and how old the keys are.' \
    'register||domain.2 dry-run refresh assign-selector retry-unknown publish wait format.3 ttl origin zone find-zones provider output.2 output-dir wide.2 auth-url base-url client-id credential-store batch-size concurrency timeout max-wait ca-bundle proxy profile sandbox config color verbose quiet help|,@files|1|Register the domains of spec files, and show their DNS records.' \
    'show-dns||from format.3 ttl origin zone find-zones provider output.2 output-dir wide.2 base-url client-id profile sandbox config color verbose quiet help|,@domains @specs|1|Show the DNS records of what is registered.' \
    'publish||dry-run.2 yes replace wait.2 check-access retired assume-successors format.4 output.2 base-url client-id profile sandbox config color verbose quiet help|,@domains @specs|1|Put the records of what is registered into DNS.' \
    'handoff||format.5 language contact zone.2 provider.2 ttl retired.2 assume-successors output.2 base-url client-id profile sandbox config color verbose quiet help|,@domains @specs|1|Write a sheet for whoever owns the DNS, with the records to add and how.' \
    'check-dns||from.2 server.2 resolver max-in-flight wait.3 expect-absent warn-within notify test-notice format.6 output.2 base-url client-id profile sandbox config color verbose quiet help|,@domains @specs|1|Check that DNS has the registered records.' \
    'verify||server.2 resolver format output.2 base-url client-id profile sandbox config color verbose quiet help|,@files|1|Verify the DKIM signatures of received mail, and compare their keys with the ledger.' \
    'rotate|run status|older-than start-in selector key-len retired.3 format.7 zone.3 no-check max-age-of-check assume-successors output.2 base-url client-id profile sandbox config color verbose quiet help|,@domains @specs|1|Print specs (YAML) for the successors of old keys.' \
    'rotate run||dry-run.3 wait.4 format output.2 auth-url base-url client-id credential-store batch-size concurrency timeout max-wait ca-bundle proxy profile sandbox config color verbose quiet help|,@domains @specs|1|Do everything that is due: replace old keys, publish, check, and remove retired records.' \
    'rotate status||format.2 timeline output.2 base-url client-id profile sandbox config color verbose quiet help|,@domains @specs|1|Show where each key is in its life, since when, and what comes next.' \
    'ledger|import forget|profile sandbox config color verbose quiet help|||Import registrations into the ledger, or forget retired ones.' \
    'ledger import||base-url client-id profile sandbox config color verbose quiet help|,@files||Import the registrations of a saved result.' \
    'ledger forget||force still-published assume-successors format.8 output.2 base-url client-id profile sandbox config color verbose quiet help|,@domains @specs|1|Remove retired registrations from the ledger.' \
    'token||auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help|||Print a valid access token.' \
    'api||input auth-url base-url client-id credential-store timeout ca-bundle proxy profile sandbox config color verbose quiet help|,GET POST PUT PATCH DELETE,||Send any bearer-protected request, and print the response.' \
    'schema||color quiet help|,specs config output,register show-dns rotate ledger forget check-dns publish list status run overview handoff verify doctor profile service client create rotate-secret registration audit errors|1|Print the JSON Schema of spec files, of the config file, or of what commands print as JSON.' \
    'completion||color quiet help|,bash zsh fish||Print a shell\'s completion script.' \
    'serve||host port data max-domains threads workers key-pool faults log-format trusted-proxy metrics-from color quiet help|||Run the embedded service over HTTP, until Ctrl-C.' \
    'service|client registration delivery export backup restore audit|color quiet help|||Manage the embedded service: its clients, registrations, deliveries and data.' \
    'service client|create list disable enable delete rotate-secret|color quiet help|||Create, list, disable, enable and delete clients, and give them new secrets.' \
    'service client create||data output.3 color quiet help|,||Create a client and print its ID and secret as JSON; the secret is not shown again.' \
    'service client list||format data color quiet help|||List the clients, one per line: ID, state, creation time.' \
    'service client disable||data color quiet help|,@clients||Disable a client: it still gets tokens, but requests with them are refused.' \
    'service client enable||data color quiet help|,@clients||Enable a disabled client.' \
    'service client delete||data color quiet help|,@clients||Delete a client permanently: it gets no more tokens; its registrations stay taken.' \
    'service client rotate-secret||overlap data output.3 color quiet help|,@clients||Give a client a new secret and print it as JSON; it is not shown again.' \
    'service registration|list enable disable delete|color quiet help|||List, enable, disable and delete registrations.' \
    'service registration list||client domain.3 format data color quiet help|||List the registrations, one per line.' \
    'service registration enable||data color quiet help|,,||Enable a disabled registration.' \
    'service registration disable||data color quiet help|,,||Disable a registration: `service export` then leaves its key out.' \
    'service registration delete||yes data color quiet help|,,||Delete a registration and its private key.' \
    'service delivery|add|color quiet help|||Add deliveries, which a client can cancel.' \
    'service delivery add||data color quiet help|,@clients||Add a delivery for a client and print its ID, for `dkimctl api DELETE /send/ID`.' \
    'service export||format.9 output-dir.2 group third-party-client data color quiet help|||Write the private keys in effect, and the files that tell a signer to use them.' \
    'service backup||data color quiet help|,@files||Back up the service\'s data to a new file, also while the service runs.' \
    'service restore||data color quiet help|,@files||Restore a backup to a new data file, or to an empty PostgreSQL database.' \
    'service audit||since purge-before format data color quiet help|||Show the audit log, one action per line: time, actor, action, object.'

# key|names|where its values come from|repeatable|help
set -g __dkimctl_options \
    'profile|--profile -p|@profiles||Profile to use.' \
    'sandbox|--sandbox|||Use the embedded service: no account, no network.' \
    'config|--config|@files||Config file to read.' \
    'color|--color|auto always never||auto, always, never (default: auto, on a terminal).' \
    'verbose|--verbose -v|||Log requests and DNS queries; show lists in full.' \
    'quiet|--quiet -q|||Show only warnings and errors.' \
    'version|--version -V|||Show the version and exit.' \
    'help|--help -h|||Show this message and exit.' \
    'domain|--domain||1|A signing domain; repeatable.' \
    'output|--output -o|@files||Spec file to write.' \
    'no-config|--no-config|||Write only the spec file.' \
    'dns|--dns|hand rfc2136 octodns||hand, rfc2136, octodns (default: hand).' \
    'server|--server|||The primary server, for dynamic updates.' \
    'key-file|--key-file|@files||File of the TSIG key that signs them.' \
    'class|--class|||Class of the octoDNS provider.' \
    'auth-url|--auth-url|||URL that issues access tokens.' \
    'base-url|--base-url|||URL of the service.' \
    'client-id|--client-id|||Client ID.' \
    'credential-store|--credential-store|keyring file||keyring or file, for secret and token.' \
    'offline|--offline|||Leave out what needs the network.' \
    'format|--format -f|table json||table, json.' \
    'timeout|--timeout|||Longest wait for an answer (default: 30s).' \
    'ca-bundle|--ca-bundle|@files||PEM file of CAs to trust, not the system\'s.' \
    'proxy|--proxy|||Proxy for all requests.' \
    'secret-stdin|--secret-stdin|||Read the client secret from standard input.' \
    'allow-plaintext-keyring|--allow-plaintext-keyring|||Store the secret even in an unencrypted keyring.' \
    'yes|--yes -y|||Answer the question with yes, without asking.' \
    'batch-size|--batch-size|||Domains per request (default: 50).' \
    'concurrency|--concurrency|||Parallel requests (default: 8).' \
    'max-wait|--max-wait|||Longest Retry-After to honour (default: 5m).' \
    'filter|--filter||1|Show only such keys, as in state=missing.' \
    'sort-by|--sort-by|||Sort by a field, such as due.' \
    'reverse|--reverse|||Sort the other way round.' \
    'all|--all -a|||Show keys that were removed, too.' \
    'wide|--wide -w|||Add what comes next, and the FQDN.' \
    'format.2|--format -f|table json csv||table, json, csv (default: table).' \
    'output.2|--output -o|@files||Write the result to this file, atomically; `-` is stdout.' \
    'html|--html|@files||Write it as a page that needs no other file.' \
    'domain.2|--domain||1|Also register this signing domain, with the profile\'s defaults; repeatable.' \
    'dry-run|--dry-run -n|||Show what would be done, and send nothing.' \
    'refresh|--refresh|||Also send entries that are already in the ledger.' \
    'assign-selector|--assign-selector|||Selector for entries without one, such as s%Y%m; {domain} is a short hash of the domain.' \
    'retry-unknown|--retry-unknown|||Retry unanswered entries that have no selector; may create duplicates.' \
    'publish|--publish|||Then publish the records, and check DNS, without asking.' \
    'wait|--wait|||With --publish: longest time to wait until DNS has the records (default: 2m).' \
    'format.3|--format -f|table json jsonl csv markdown zone nsupdate octodns dnscontrol route53 powerdns terraform value||table, json, jsonl, csv, markdown, zone, nsupdate, octodns, dnscontrol, route53, powerdns, terraform, value (default: table on a terminal, else zone).' \
    'ttl|--ttl|||TTL of the records.' \
    'origin|--origin|||Write names relative to this zone (format zone).' \
    'zone|--zone||1|Zone of your DNS; repeatable. A record goes into the longest zone that contains it.' \
    'find-zones|--find-zones|||Look up the zones in DNS, by their SOA records.' \
    'provider|--provider|route53 cloudflare google||Provider of the terraform resources: route53, cloudflare, google (default: route53).' \
    'output-dir|--output-dir|@directories||Write one file per zone to this directory.' \
    'wide.2|--wide|||Add the service\'s result code and message to the table.' \
    'from|--from|@files||Read the registrations in a file instead of those in the ledger: JSON that a command of dkimctl printed, or a response of the service; `-` is standard input.' \
    'dry-run.2|--dry-run -n|||Show what would be changed; 1 if there is something.' \
    'replace|--replace|||Also replace TXT records that are not DKIM key records.' \
    'wait.2|--wait|||Then check DNS until it has the records, for at most this long, such as 30m.' \
    'check-access|--check-access|||Tell what can be read and written; nothing is changed.' \
    'retired|--retired|||Remove the old records that `rotate --retired` lists.' \
    'assume-successors|--assume-successors|||Assume that newer keys replace older ones, where that is not recorded.' \
    'format.4|--format -f|table json markdown||table, json, markdown.' \
    'format.5|--format -f|text html markdown json||text, html, markdown, json (default: by the suffix of --output, else text).' \
    'language|--language|en ja||en, ja (default: en).' \
    'contact|--contact|||Whom to tell when it is done.' \
    'zone.2|--zone||1|Zone of the DNS; repeatable. Then DNS is not asked.' \
    'provider.2|--provider|azure cloudflare dnsimple godaddy google ionos linode namecheap ovh route53 sakura||DNS provider, such as cloudflare (default: told by the zone\'s name servers).' \
    'retired.2|--retired|||Records to delete, of keys that have been replaced.' \
    'from.2|--from|@files||Check the registrations in a file instead of those in the ledger: JSON that a command of dkimctl printed, or a response of the service; `-` is standard input.' \
    'server.2|--server||1|Ask only this server; repeatable (default: every authoritative server).' \
    'resolver|--resolver|||Ask only the system\'s resolver, whose cache may be out of date.' \
    'max-in-flight|--max-in-flight|||Parallel queries to one server, 1 to 1000.' \
    'wait.3|--wait|||Check again until all records are as expected, for at most this long, such as 30m.' \
    'expect-absent|--expect-absent|||Expect the records to be gone from DNS.' \
    'warn-within|--warn-within|||Warn about unpublished records whose signing starts within this time.' \
    'notify|--notify|||Tell what has become worse or better since the last run: see notify in the config file.' \
    'test-notice|--test-notice|||Only send a notice, as a test: see notify.' \
    'format.6|--format -f|table json jsonl csv prometheus nagios||table, json, jsonl, csv, prometheus, nagios (default: table).' \
    'older-than|--older-than|||Replace keys older than this; 0d: all keys (default: `max_age` of `rotation` in the config file, or 180d).' \
    'start-in|--start-in|||Time until signing with the new keys starts (default: 3d).' \
    'selector|--selector|||Template of the new selectors; {domain} is a short hash of the domain (default: s%Y%m%d).' \
    'key-len|--key-len|1024 2048||Length of the new keys: 1024 or 2048 (default: 2048).' \
    'retired.3|--retired|||List the old records that may be removed from DNS instead.' \
    'format.7|--format -f|table json nsupdate||With --retired: table, json, nsupdate (default: table on a terminal, else json).' \
    'zone.3|--zone||1|With --format nsupdate: a zone of your DNS; repeatable.' \
    'no-check|--no-check|||With --retired: rely on earlier checks of the new records, and ask no server.' \
    'max-age-of-check|--max-age-of-check|||With --no-check: the longest age of those checks (default: 24h).' \
    'dry-run.3|--dry-run -n|||Show what is due, and do nothing.' \
    'wait.4|--wait|||Check again until all servers have what was changed, for at most this long.' \
    'timeline|--timeline|||Draw the life of each key, with today as a line.' \
    'force|--force|||Forget the whole selection, retired or not.' \
    'still-published|--still-published|||Also forget those whose records may still be in DNS.' \
    'format.8|--format -f|table json||table, json (default: table on a terminal, else json).' \
    'input|--input|@files||File with the request body; `-` is standard input.' \
    'host|--host|||Address to listen on; 0.0.0.0: all IPv4 addresses.' \
    'port|--port|||Port to listen on; 0: a free one.' \
    'data|--data --database|@files||Data of the service: a file (default: in your data directory), or the URL of a PostgreSQL database.' \
    'max-domains|--max-domains|||Most domains in one request.' \
    'threads|--threads|||Requests that each process answers at the same time, 1 to 64.' \
    'workers|--workers|||Processes, 1 to 64; not on Windows.' \
    'key-pool|--key-pool|||Keys of each length to make ahead, while there is nothing else to do.' \
    'faults|--faults|@files||Inject faults into registration requests as described in FILE, to test clients.' \
    'log-format|--log-format|text json||Format of the log on stderr: text or json; --quiet leaves out the requests.' \
    'trusted-proxy|--trusted-proxy||1|IP address or network of a proxy whose X-Forwarded-For to believe; may be repeated.' \
    'metrics-from|--metrics-from||1|IP address or network that may read /metrics (default: this machine); may be repeated.' \
    'output.3|--output -o|@files||Write the secret to this new file, which only you can read, and print the ID alone.' \
    'overlap|--overlap|||How long the old secret stays valid, such as 12h; 0s ends it at once.' \
    'client|--client|@clients||List those of this client.' \
    'domain.3|--domain|||List those of this signing domain.' \
    'format.9|--format -f|opendkim rspamd||opendkim, rspamd.' \
    'output-dir.2|--output-dir|@directories||Write the files to this directory.' \
    'group|--group|||Let members of this group read the files, too (default: only you).' \
    'third-party-client|--third-party-client|@clients||Sign mail of domains without a key with the registration of this client that is marked `default` (default: the only client\'s, if there is only one).' \
    'since|--since|||Only actions since this day (in UTC) or time.' \
    'purge-before|--purge-before|||Delete actions before this day (in UTC) or time from the log; print nothing.'

# Go to a command: what can follow it.
function __dkimctl_go
    set -l row (string match -r -- "^$argv\|.*" $__dkimctl_commands | string split -m 5 '|')
    set -g __dkimctl_command $row[1]
    set -g __dkimctl_below (string split -n ' ' -- $row[2])
    set -g __dkimctl_keys (string replace -a ' ' '|' -- $row[3])
    set -g __dkimctl_arguments (string split , -- $row[4])[2..]
    set -g __dkimctl_repeats $row[5]
end

# Read the words before the cursor, which need not be valid yet.
function __dkimctl_read
    for name in given words expects ended profile sandbox config base_url client_id data
        set -g __dkimctl_$name
    end
    __dkimctl_go ''
    for word in $argv
        if test -n "$__dkimctl_expects"
            __dkimctl_note $__dkimctl_expects "$word"
            set __dkimctl_expects
            continue
        end
        switch "$__dkimctl_ended$word"
            case --
                set __dkimctl_ended 1
            case '--*=*'
                __dkimctl_note (string replace -r '=.*' '' -- "$word" | string collect) \
                    (string replace -r '.*?=' '' -- "$word" | string collect)
            case '--*'
                __dkimctl_read_option "$word" ''
            case '-?*'
                __dkimctl_read_letters (string sub -s 2 -- "$word" | string collect)
            case '*'
                if test -z "$__dkimctl_words"; and contains -- "$word" $__dkimctl_below
                    __dkimctl_go (string trim -- "$__dkimctl_command $word")
                else
                    set -a __dkimctl_words "$word"
                end
        end
    end
end

# Read short options in one word; the last can have its value there, too.
function __dkimctl_read_letters
    set -l rest $argv
    while test -n "$rest"
        set -l name -(string sub -l 1 -- "$rest")
        set rest (string sub -s 2 -- "$rest" | string collect)
        if contains -- $name $__dkimctl_take_value
            __dkimctl_read_option $name "$rest"
            return
        end
        __dkimctl_note $name 1
    end
end

function __dkimctl_read_option
    if not contains -- $argv[1] $__dkimctl_take_value
        __dkimctl_note $argv[1] 1
    else if test -n "$argv[2]"
        __dkimctl_note $argv
    else
        set __dkimctl_expects $argv[1]
    end
end

# An option and its value: those that matter for names, and that it was given.
function __dkimctl_note
    set -a __dkimctl_given "$argv[1]"
    switch "$argv[1]"
        case --profile -p
            set __dkimctl_profile "$argv[2]"
        case --sandbox
            set __dkimctl_sandbox "$argv[2]"
        case --config
            set __dkimctl_config "$argv[2]"
        case --base-url
            set __dkimctl_base_url "$argv[2]"
        case --client-id
            set __dkimctl_client_id "$argv[2]"
        case --data --database
            set __dkimctl_data "$argv[2]"
    end
end

# Print what can be at the cursor, each with its help; set __dkimctl_files.
function __dkimctl_offer
    set -l current "$argv"
    set -l at (math (count $__dkimctl_words) + 1)
    set -l last (count $__dkimctl_arguments)
    test -n "$__dkimctl_repeats" -a $at -gt $last; and set at $last
    if test -n "$__dkimctl_expects"
        __dkimctl_offer_values $__dkimctl_expects "$current" ''
    else if test -n "$__dkimctl_words" -a -n "$__dkimctl_below" -a $last -eq 0
        return # there is no such command
    else if string match -q -- '--*=*' "$__dkimctl_ended$current"
        set -l split (string match -r -- '^([^=]*)=(.*)' "$current")
        __dkimctl_offer_values "$split[2]" "$split[3]" "$split[2]="
    else if string match -q -- '-*' "$__dkimctl_ended$current"
        __dkimctl_offer_options
    else
        test -z "$__dkimctl_words"; and __dkimctl_offer_commands
        if test $at -le $last
            __dkimctl_offer_source "$__dkimctl_arguments[$at]" "$current" ''
        else if test -z "$__dkimctl_below$current"
            __dkimctl_offer_options
        end
    end
end

function __dkimctl_offer_commands
    for name in $__dkimctl_below
        set -l command (string trim -- "$__dkimctl_command $name")
        set -l row (string match -r -- "^$command\|.*" $__dkimctl_commands | string split -m 5 '|')
        printf '%s\t%s\n' $name $row[6]
    end
end

function __dkimctl_offer_options
    for row in (string match -r -- "^(?:$__dkimctl_keys)\|.*" $__dkimctl_options)
        set -l option (string split -m 4 '|' -- $row)
        set -l names (string split ' ' -- $option[2])
        set -l given
        for name in $names
            contains -- $name $__dkimctl_given; and set given 1
        end
        if test -z "$given" -o -n "$option[4]"
            for name in $names
                printf '%s\t%s\n' $name $option[5]
            end
        end
    end
end

# The values of an option, the word, and what that has before the value, such as --format=.
function __dkimctl_offer_values
    for row in (string match -r -- "^(?:$__dkimctl_keys)\|.*" $__dkimctl_options)
        set -l option (string split -m 4 '|' -- $row)
        if contains -- $argv[1] (string split ' ' -- $option[2])
            __dkimctl_offer_source "$option[3]" $argv[2..]
        end
    end
end

function __dkimctl_offer_source
    for each in (string split -n ' ' -- $argv[1])
        switch $each
            case @files @specs @directories
                set __dkimctl_files $each
            case '@*'
                __dkimctl_names (string sub -s 2 $each) "$argv[2]" |
                    string replace -r '^' -- "$argv[3]"
            case '*'
                echo "$argv[3]$each"
        end
    end
end

# Ask for names: the program that is typed, or else the dkimctl of the PATH.
function __dkimctl_names
    set -l program (string replace -r '^~(?=/)' "$HOME" -- "$__dkimctl_program")
    command -q -- "$program"; or set program dkimctl
    command -q -- $program; or return
    set -lx _DKIMCTL_COMPLETE $argv[1]
    set -lx _DKIMCTL_COMPLETE_START "$argv[2]"
    set -lx _DKIMCTL_COMPLETE_PROFILE "$__dkimctl_profile"
    set -lx _DKIMCTL_COMPLETE_SANDBOX "$__dkimctl_sandbox"
    set -lx _DKIMCTL_COMPLETE_CONFIG "$__dkimctl_config"
    set -lx _DKIMCTL_COMPLETE_BASE_URL "$__dkimctl_base_url"
    set -lx _DKIMCTL_COMPLETE_CLIENT_ID "$__dkimctl_client_id"
    set -lx _DKIMCTL_COMPLETE_DATA "$__dkimctl_data"
    command $program 2>/dev/null </dev/null
end

# Collect what can be at the cursor; fails where fish is to complete file names itself.
function __dkimctl_ask
    set -l words (commandline -opc)
    set -g __dkimctl_program $words[1]
    set -g __dkimctl_files
    __dkimctl_read $words[2..]
    set -l typed (commandline -ct | string replace -ra '[\'"\\\\]' '' | string collect)
    set -g __dkimctl_offered (__dkimctl_offer "$typed")
    test "$__dkimctl_files" != @files
end

function __dkimctl_show
    test -n "$__dkimctl_offered"; and printf '%s\n' $__dkimctl_offered
    set -l token (commandline -ct)
    switch "$__dkimctl_files"
        case @specs
            # What fish completes for a command that it does not know: files.
            complete -C "__dkimctl_files $token" |
                string match -r -- '.*(?:/|\.ya?ml|\.json|\.csv)$'
        case @directories
            set -l option (string match -r -- '^--[a-z-]+=' "$token")
            __fish_complete_directories (string replace -- "$option" '' "$token") '' |
                string replace -r -- '^' "$option"
    end
end

complete --command dkimctl --no-files --condition __dkimctl_ask --arguments '(__dkimctl_show)'
