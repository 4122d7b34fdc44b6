"""Measure `dkimctl register` end to end, compared with a bare loop that posts the same bodies.

Run: python tests/bench/register.py [DOMAINS] [REPETITIONS]

At 20 ms of server latency, in batches of 50: YAML in, HTTP, ledger, JSON out. The floor is 8
threads of httpx that post the same bodies and ignore the responses. Then, with a server that
responds at once: whether time and memory are proportional to the number of domains.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from load import TOOL, arguments, environment, measure

BATCH = 50
LATENCY = 0.020  # seconds
TOKEN = b"a-token-as-long-as-many-are-4711-0123456789"  # responses are searched for it
DEFAULTS = "defaults: {key_len: 2048, enable: false}\ndomains:\n"
ENTRY = "- {{sign_domain: d{}.example.com, selector: s1}}\n"
FLOOR = """
import sys, httpx
from concurrent.futures import ThreadPoolExecutor
url, count, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def body(first):
    entries = ('{"sign_domain":"d%d.example.com","selector":"s1","key_len":2048,"enable":false}' % n
               for n in range(first, min(first + batch, count)))
    return ('{"domains":[' + ",".join(entries) + "]}").encode()
bodies = [body(first) for first in range(0, count, batch)]
headers = {"Authorization": "Bearer token", "Content-Type": "application/json"}
with httpx.Client(headers=headers) as client, ThreadPoolExecutor(8) as pool:
    for answer in pool.map(lambda body: client.post(url + "/domain/dkim", content=body), bodies):
        assert answer.status_code == 200
"""


class BenchService(asyncio.Protocol):
    """Registers every domain with the same key, after `latency` seconds."""

    latency = 0.0
    value = ""

    def __init__(self) -> None:
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, rest = self._data.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(rest) < length:
            return
        self._data = rest[length:]
        if b"/oauth2/token" in head[:40]:
            body = b'{"access_token": "%b", "expires_in": 3600}' % TOKEN
        else:
            body = self._register(rest[:length])
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        asyncio.get_running_loop().call_later(self.latency, self._transport.write, answer)

    def _register(self, body: bytes) -> bytes:
        items = [self._item(entry["sign_domain"]) for entry in json.loads(body)["domains"]]
        return f'{{"items":[{",".join(items)}],"count":0,"total":0}}'.encode()

    def _item(self, domain: str) -> str:
        return (
            f'{{"result":{{"code":"201","message":"created"}},"sign_domain":"{domain}",'
            '"selector":"s1","key_len":2048,"start_date":"2027-07-01T00:00+09:00","default":0,'
            f'"enable":false,"setting_values":{{"fqdn":"s1._domainkey.{domain}","type":"TXT",'
            f'"value":"{self.value}"}},"regist_date":"2026-07-01T00:00:00+09:00"}}'
        )


async def serve(latency: float) -> None:
    """Serve until killed; the first line on stdout is the port."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    BenchService.latency = latency
    BenchService.value = f"v=DKIM1; k=rsa; p={base64.b64encode(der).decode()}"
    server = await asyncio.get_running_loop().create_server(BenchService, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Bench:
    """Runs dkimctl and the floor with one service, dkimctl with a new home each time."""

    def __init__(self, latency: float, home: Path) -> None:
        self._home = home
        self._service = subprocess.Popen(
            [sys.executable, __file__, "serve", str(latency)], stdout=subprocess.PIPE, text=True
        )
        self._url = f"http://127.0.0.1:{self._service.stdout.readline().strip()}"
        self._runs = 0

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._service.kill()
        self._service.wait()

    def floor(self, domains: int) -> tuple[float, float]:
        words = [sys.executable, "-c", FLOOR, self._url, str(domains), str(BATCH)]
        return measure(words, environment(self._home))

    def tool(self, domains: int) -> tuple[float, float]:
        self._runs += 1
        specs = self._home / "specs.yaml"
        specs.write_text(DEFAULTS + "".join(map(ENTRY.format, range(domains))))
        env = environment(self._home, self._url)
        env["DKIMCTL_STATE_DIR"] = str(self._home / f"state-{self._runs}")
        return measure([TOOL, "register", str(specs), "--format", "json"], env)


def compare(domains: int, repetitions: int, home: Path) -> None:
    print(f"{domains} domains, batches of {BATCH}, {LATENCY * 1000:.0f} ms of latency")
    with Bench(LATENCY, home) as bench:
        for _ in range(repetitions):
            floor, _ = bench.floor(domains)
            tool, mib = bench.tool(domains)
            rates = f"{domains / floor:7.0f} /s bare, {domains / tool:7.0f} /s dkimctl"
            print(f"  {rates} ({mib:.0f} MiB): {floor / tool:.0%} of the bare loop")


def grow(largest: int, home: Path) -> None:
    print("growth, against a server that answers at once")
    with Bench(0.0, home) as bench:
        for domains in (largest // 100, largest // 10, largest):
            seconds, mib = min(bench.tool(domains) for _ in range(3))
            each = seconds / domains * 1e6
            print(f"  {domains:7} domains {seconds:6.2f} s, {each:5.0f} µs each, {mib:4.0f} MiB")


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(float(sys.argv[2])))
        return
    domains, repetitions = arguments(100_000, 3)
    print(f"at {time.strftime('%H:%M:%S')}")
    with tempfile.TemporaryDirectory() as home:
        compare(domains, repetitions, Path(home))
        grow(domains, Path(home))


if __name__ == "__main__":
    main()
