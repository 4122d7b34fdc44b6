"""The English texts of a sheet."""

TEXTS = {
    "title": "DNS records to add",
    "about_one": "Please add this TXT record to your DNS. It holds the public key with which "
    "receivers verify mail from {domains} (DKIM).",
    "about_many": "Please add these {count} TXT records to your DNS. They hold the public keys "
    "with which receivers verify mail from {domains} (DKIM).",
    "many_domains": "{count} domains",
    "harmless": "A public key is no secret. The records change nothing about your website, your "
    "mailboxes, or how mail reaches you.",
    "contact": "When it is done, or if anything is unclear, please contact {contact}",
    "contact_none": "When it is done, or if anything is unclear, please answer whoever sent you "
    "this sheet.",
    "by": "Please add it by {due}.",
    "at_once": "Please add it as soon as possible.",
    # A zone.
    "zone": "Zone",
    "domain": "Domain",
    "provider": "DNS provider",
    "servers": "Name servers",
    "instructions": "More about its panel",
    "zone_no_answer": "DNS did not answer, so the zone of this domain is not known here, and "
    "the host below is the full name. If your panel adds the name of the zone by itself, leave "
    "it out at the end of the host.",
    "zone_no_zone": "DNS has no zone for this domain yet, so the host below is the full name. "
    "If your panel adds the name of the zone by itself, leave it out at the end of the host.",
    "servers_no_answer": "DNS did not answer when asked for the name servers of this zone, so "
    "these are general instructions.",
    "idn": "{ascii} is the name {readable} as DNS writes it. Where the panel takes either, "
    "enter the one with xn--.",
    # How to enter it.
    "panel_of": "In the panel of {provider}",
    "panel": "In your DNS panel",
    "host_adds": "Enter the host as it stands here, without the zone: the panel adds {zone} by "
    "itself. A name such as {doubled} would be wrong.",
    "host_mostly": "Most panels add {zone} to the host by themselves; if yours does not, enter "
    "the full name. A name such as {doubled} would be wrong.",
    "fields": 'The fields are called "{name_field}" for the host and "{value_field}" for the '
    "value.",
    "field": 'The field for the host is called "{name_field}".',
    "no_quotes": "Enter the value without quotation marks.",
    "adds_quotes": "Enter the value without quotation marks: the panel adds them by itself.",
    "with_quotes": "Enter the value with its quotation marks, on one line, with one space "
    "between the strings.",
    "splits": "The panel splits long values by itself: enter the value whole.",
    "maybe_strings": "If the panel refuses a value of more than 255 characters, enter the "
    "quoted strings instead.",
    "text_mode": 'The form takes at most {limit} characters. For a longer value, choose "Change '
    'in text format", and enter the quoted strings there.',
    "proxies": "Choose the type TXT. Such a record cannot be proxied: an orange cloud means "
    "that the type is another one.",
    # A record.
    "record": "Record {number}",
    "type": "Type",
    "host": "Host",
    "fqdn": "Full name",
    "readable": "Readable name",
    "ttl": "TTL",
    "seconds": "{count} seconds",
    "value_enter": "Value to enter, on one line",
    "strings_enter": "Value to enter: quoted strings, on one line",
    "value_other": "The same value in one piece, to compare",
    "strings_other": "The same value as quoted strings, for zone files and panels that need them",
    "too_long": "This value has {length} characters, and the panel takes at most {limit}, as "
    "far as is documented. Please do not shorten it, but tell us: part of a key is of no use.",
    "later": "Mail is signed with this key from {start}. Until then, nothing depends on the "
    "record.",
    "late": "Without the record, receivers cannot verify the signed mail: they may treat it as "
    "spam, or refuse it.",
    "now": "Mail is signed with this key already. As long as the record is not in DNS, "
    "receivers cannot verify that mail: they may treat it as spam, or refuse it.",
    "disabled": "No mail is signed with this key yet, so nothing depends on the record.",
    "unknown": "It is not known here when mail is signed with this key.",
    # All records.
    "never": "Please do not",
    "never_break": "add spaces or line breaks to a value, or leave out part of it;",
    "never_others": "change or delete other records, even old ones with _domainkey in their "
    "names, before we ask for it: mail on its way still needs them;",
    "never_second": "add a second TXT record to a host that has one: if it has another value, "
    "tell us;",
    "never_cname": "add a CNAME record to the same host.",
    "check": "How to check it",
    "check_us": "We check the records at all name servers of the zone. You can do so, too, some "
    "minutes after the change: the answer has the same value, perhaps in several quoted parts.",
    "check_first": "For the first record:",
    "unix": "Linux, macOS",
    "windows": "Windows",
    # Records to delete.
    "delete_title": "DNS records to delete",
    "delete_about_one": "Please delete this TXT record from your DNS. It holds a public key "
    "with which receivers verified mail from {domains} (DKIM), and which a new key has replaced.",
    "delete_about_many": "Please delete these {count} TXT records from your DNS. They hold "
    "public keys with which receivers verified mail from {domains} (DKIM), and which new keys "
    "have replaced.",
    "delete_harmless": "We have just checked that the new keys are in DNS; mail has been signed "
    "with them for long enough. There is no hurry, but old keys should not stay.",
    "delete_value": "Its value, to compare",
    "delete_other": "delete other records, even if their names look alike;",
    "delete_changed": "delete a record that has another value than here: tell us instead.",
    "delete_check": "We check at all name servers of the zone that the records are gone. You "
    "can do so, too, some minutes after the change: there is no answer any more.",
    "made": "Made on {date} with dkimctl",
}

DAYS, HOURS, MINUTES = ("1 day", "{} days"), ("1 hour", "{} hours"), ("1 minute", "{} minutes")
