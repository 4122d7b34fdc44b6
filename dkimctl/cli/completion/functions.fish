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
