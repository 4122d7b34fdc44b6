"""Ask verifiers of mail about keys: dkimpy, OpenDKIM and Mail::DKIM, by the machine's resolver.

Run as a program, in a network of its own: standard input has a JSON list of [domain, selector,
file with the private key]; standard output gets a list with what each verifier says of a mail that
is signed with each: "" if it accepts, otherwise why not.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dkim
import dns.exception

from milter import added_headers
from published import private_keys

NAMES = ("dkimpy", "OpenDKIM", "Mail::DKIM")  # in the order of the answers
_THREADS = 16  # most of them wait for servers that do not answer
_PORT = 8891
_MAIL = (
    b"From: sender@%(domain)s\r\nTo: someone@example.net\r\nSubject: signed\r\n\r\nVerify it.\r\n"
)
# Without Nameservers, libunbound would ask the root servers of the real world.
_OPENDKIM = f"""
Mode v
Socket inet:{_PORT}@127.0.0.1
Background no
Syslog no
Nameservers 127.0.0.1
InternalHosts 192.0.2.1
AlwaysAddARHeader yes
"""
# Reads names of files with mails; a line of results for each.
_MAIL_DKIM = """
use Mail::DKIM::Verifier;
$| = 1;
while (my $file = <STDIN>) {
    chomp $file;
    my $verifier = Mail::DKIM::Verifier->new();
    open(my $mail, '<:raw', $file) or die $!;
    local $/;
    $verifier->PRINT(<$mail>);
    $verifier->CLOSE;
    $/ = "\\n";
    my $details = $verifier->result_detail;
    $details =~ s/\\s+/ /g;
    print "$details\\n";
}
"""


def sign(domain: str, selector: str, key: str) -> bytes:
    mail = _MAIL % {b"domain": domain.encode()}
    return dkim.sign(mail, selector.encode(), domain.encode(), Path(key).read_bytes()) + mail


def ask_dkimpy(mail: bytes) -> str:
    try:
        return "" if dkim.DKIM(mail).verify() else "the signature is wrong"
    except (dkim.DKIMException, dns.exception.DNSException, ValueError) as error:
        return repr(error)


def ask_opendkim(mail: bytes) -> str:
    decision, added = added_headers(_PORT, mail, "sender@example.net")
    results = [value.decode() for name, value in added if name == b"Authentication-Results"]
    is_pass = any(re.search(r"\bdkim=pass\b", result) for result in results)
    return "" if is_pass else f"{decision.decode()} {results}"


def ask_mail_dkim(mails: list[bytes]) -> list[str]:
    """In some processes, since each waits for its answers."""

    def ask(part: list[bytes], number: int) -> list[str]:
        files = [Path(f"{number}.{mail}.eml") for mail in range(len(part))]
        for file, mail in zip(files, part, strict=True):
            file.write_bytes(mail)
        done = subprocess.run(
            ["perl", "-e", _MAIL_DKIM], input="".join(f"{file}\n" for file in files),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        assert len(lines) == len(part), done.stderr
        return ["" if line == "pass" else line for line in lines]

    parts = [mails[number::_THREADS] for number in range(_THREADS)]
    answers = [""] * len(mails)
    with ThreadPoolExecutor(_THREADS) as pool:
        for number, part in enumerate(pool.map(ask, parts, range(_THREADS))):
            answers[number::_THREADS] = part
    return answers


@contextlib.contextmanager
def running_opendkim() -> Iterator[None]:
    Path("opendkim.conf").write_text(_OPENDKIM)
    with subprocess.Popen(["opendkim", "-x", "opendkim.conf"], stderr=sys.stderr) as process:
        try:
            deadline = time.monotonic() + 30
            while True:
                try:
                    socket.create_connection(("127.0.0.1", _PORT)).close()
                    break
                except OSError:
                    assert process.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            yield
        finally:
            process.terminate()


def ask_all(network, home: Path) -> dict[tuple[str, str], list[str]]:
    """What each says, in this network, of each key in the sandbox, by domain and selector."""
    keys = private_keys(home)
    questions = []
    for number, ((domain, selector), key) in enumerate(keys.items()):
        file = home / f"{number}.pem"
        file.touch(0o600)
        file.write_bytes(key)
        questions.append((domain, selector, str(file)))
    done = network.run(sys.executable, __file__, stdin=json.dumps(questions))
    assert done.returncode == 0, done.stderr
    return dict(zip(keys, json.loads(done.stdout), strict=True))


def main() -> None:
    dkim.fold = lambda header, *_, **__: header  # which would break long domains in two
    mails = [sign(*question) for question in json.load(sys.stdin)]
    with running_opendkim(), ThreadPoolExecutor(_THREADS) as pool:
        dkimpy, opendkim = pool.map(ask_dkimpy, mails), pool.map(ask_opendkim, mails)
        answers = zip(dkimpy, opendkim, ask_mail_dkim(mails), strict=True)
        json.dump(list(answers), sys.stdout)


if __name__ == "__main__":
    main()
