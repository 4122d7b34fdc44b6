"""`dkimctl verify`: whether the signatures of a received mail are valid."""

import time
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated

import typer

from dkimctl.cli import next_steps
from dkimctl.cli.checking import ResolverOption, ServerOption, open_source
from dkimctl.cli.options import App, OutputOption, TableOrJson, TableOrJsonOption, argument
from dkimctl.cli.output import read_format, table_layout, write_chunks
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode, LedgerError, UsageError, worst_check
from dkimctl.formats.checks import render_mails
from dkimctl.input_files import read_bytes
from dkimctl.mail.message import KnownKey, MailVerdict, read_message
from dkimctl.mail.verification import require_dkimpy, verify_mail
from dkimctl.models import RegistrationKey, key_of, named
from dkimctl.rotation.life import keys_of
from dkimctl.text import few

app = App()
_MAX_BYTES = 50 << 20
_CODES = {
    MailVerdict.PASS: ExitCode.OK,
    MailVerdict.FAIL: ExitCode.NO,
    MailVerdict.UNKNOWN: ExitCode.SERVICE,
}


@app.command(
    "dkimctl verify mail.eml",
    "dkimctl verify --format json - < mail.eml",
    "dkimctl verify mail.eml --server 192.0.2.1",
)
def verify(
    ctx: typer.Context,
    mails: Annotated[list[str], argument("MAIL...", "Mails, each in a file; - is standard input.")],
    server: ServerOption = None,
    resolver: ResolverOption = False,
    fmt: TableOrJsonOption = None,
    output: OutputOption = None,
) -> int:
    """Verify the DKIM signatures of received mail, and their keys.

    They are compared with those of the ledger. The keys are looked up as a receiver does, by the
    system's resolver; IN DNS is the verdict of check-dns for registered ones. No token is needed,
    and Authentication-Results in the mail does not count.

    If a valid mail shows that a removed key signs again, the key is active again in the ledger, and
    `publish` puts its record back.

    The exit code is 0 if at least one signature is valid, all of registered domains are, and no
    removed key signs; otherwise 1, or 4 if DNS gave no answer.
    """
    session = open_session(ctx)
    require_dkimpy()
    fmt = read_format(TableOrJson, fmt, output)
    check = open_source(server or (), resolver)
    sources = check if check.is_given else open_source(resolver=True), check
    ledger = None  # if no account is set up, which verifying needs not
    _ = session.profile  # raises for an unknown one
    try:
        ledger = session.open_ledger(for_writing=False)
    except LedgerError:
        raise
    except UsageError:
        session.reporter.note("dkimctl: no account is set up, so no key counts as registered")

    def read_known(domains: Collection[str]) -> dict[RegistrationKey, KnownKey]:
        now, policies = datetime.now(UTC), session.config.rotation
        known = {}
        for domain in ledger.domains() if ledger else ():
            for key in keys_of(domain, policies, now) if domain.sign_domain in domains else ():
                registration = None if key.is_removed else key.registration
                mail = domain.mail.get(key.key, domain.no_mail)
                known[key.key] = KnownKey(key.stage, registration, mail=mail)
                if ledger and (removed_at := key.dates.removed_at):
                    # A grace period before that, its successor had taken over.
                    removed = ledger.removed_registration(key.key)
                    known[key.key] = known[key.key]._replace(
                        removed=removed, replaced_at=removed_at - key.policy.grace
                    )
        return known

    reports, codes = [], list[ExitCode]()
    large = "no receiver takes a mail that large"
    for file in mails:
        name = "<stdin>" if file == "-" else file
        try:
            message = read_message(read_bytes(file, largest=_MAX_BYTES, hint_if_large=large), name)
            reports.append(verify_mail(message, name, *sources, read_known, time.time()))
        except UsageError as error:
            if len(mails) == 1:
                raise
            session.reporter.error(error)
            codes.append(error.exit_code)
    layout = table_layout(session.reporter, output)
    chunks = render_mails(reports, layout, is_json=fmt is TableOrJson.JSON)
    write_chunks(chunks, output, is_paged=fmt is not TableOrJson.JSON)
    signatures = [signature for report in reports for signature in report.signatures]
    verdicts = Counter(str(signature.verdict) for signature in signatures)
    text = ", ".join(f"{name} {verdicts[name]}" for name in MailVerdict if verdicts[name])
    session.reporter.summarize(text or "no signature", verdicts)
    codes += (_CODES[report.verdict] for report in reports)
    again = [signature for signature in signatures if signature.signs_again]
    if names := {key_of(each.sign_domain, each.selector): named(each) for each in again}:
        selection = next_steps.select_domains(key.sign_domain for key in names)
        publish = next_steps.publish(selection, by_target=session.has_dns_targets)
        session.reporter.warn(
            f"mail is signed with a removed key: {len(names)} ({few([*names.values()])})",
            hint=f"put its record back: {publish}, then {next_steps.wait_for(selection)}",
            code="removed_key_signs",
        )
        # Registered again in the ledger, they are published again.
        with session.lock_account(), session.open_ledger(for_writing=True) as writable:
            writable.note_signing(names)
        codes.append(ExitCode.NO)
    return worst_check(codes)
