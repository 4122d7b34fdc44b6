"""`dkimctl serve`: the embedded service over HTTP."""

import ipaddress
import os
import socket
import sys
from contextlib import ExitStack, closing
from functools import partial
from typing import Annotated

import typer

from dkimctl.cli.options import App, DataOption, option
from dkimctl.cli.report import Reporter
from dkimctl.cli.sandbox import data_option, needs_service_extra, open_service_store
from dkimctl.errors import ExitCode, UsageError, naming
from dkimctl.files import new_name
from dkimctl.service.location import Location

app = App(takes_profile=False)


@app.command(
    "dkimctl serve",
    "dkimctl serve --port 8025 --data service.db",
    "dkimctl serve --host 0.0.0.0",
    "dkimctl serve --workers 4 --metrics-bind 127.0.0.1:9100",
)
def serve(
    ctx: typer.Context,
    host: Annotated[str, option("--host ADDRESS",
        "Address to listen on; 0.0.0.0: all IPv4 addresses.")] = "127.0.0.1",
    port: Annotated[int, option("--port PORT",
        "Port to listen on; 0: a free one.", min=0, max=65535)] = 8025,
    data: DataOption = None,
    max_domains: Annotated[int, option("--max-domains N",
        "Most domains in one request.", min=1)] = 50,
    threads: Annotated[int, option("--threads N",
        "Requests that each process answers at the same time, 1 to 1024.", min=1, max=1024)] = 256,
    workers: Annotated[int, option("--workers N",
        "Processes, 1 to 64; on Windows 1.", min=1, max=64)] = 1,
    trusted_proxy: Annotated[list[str] | None, option("--trusted-proxy ADDRESS",
        "IP address or network of a proxy whose X-Forwarded-For is trusted; repeatable.")] = None,
    metrics_bind: Annotated[str | None, option("--metrics-bind HOST:PORT", "Serve metrics for "
        "Prometheus at this address, such as 127.0.0.1:9100 (default: off).")] = None,
) -> int:  # fmt: skip
    """Run the embedded service over HTTP, until Ctrl-C.

    It is for other machines or tools. The service does not support TLS: put a TLS proxy in front
    of it for access over a network. Each request is a line on stderr; --quiet leaves them out.
    """
    with needs_service_extra():
        from dkimctl.service.access_log import TrustedProxies
        from dkimctl.service.app import load_app
        from dkimctl.service.health import serving_metrics
        from dkimctl.service.server import HttpServer, listen
    if workers > 1 and sys.platform == "win32":
        raise UsageError("--workers does not work on Windows", hint="leave it out")
    with naming("--trusted-proxy"):
        proxies = TrustedProxies(trusted_proxy or ())
    # Problems with the data show before anything listens. Each process opens it for itself.
    open_store = partial(open_service_store, data, may_create=True, with_keys=True)
    open_store().close()
    with closing(listen(host, port)) as listening, ExitStack() as stack:
        if metrics_bind is not None:
            stack.enter_context(serving_metrics(metrics_bind, open_store))
        load = partial(
            load_app, open_store, max_domains=max_domains, threads=threads,
            key_threads=max(1, (os.cpu_count() or 1) // workers),
            proxies=None if ctx.obj.quiet else proxies,
        )  # fmt: skip
        ready = partial(_announce, ctx.obj, host, listening.getsockname(), data)
        HttpServer(listening, load, workers=workers, threads=threads, ready=ready).run()
    return ExitCode.OK


def _announce(reporter: Reporter, host: str, name: tuple[str, int], data: Location | None) -> None:
    """Say where the service listens, who can use that, and how to log in."""
    # With the zone of an address, such as fe80::1%eth0.
    address, port = socket.getnameinfo(name, socket.NI_NUMERICHOST)[0], name[1]
    # Where it listens on all addresses: which, and how this machine reaches it.
    everywhere = {"0.0.0.0": ("all IPv4", "127.0.0.1"), "::": ("all IPv6", "::1")}  # noqa: S104
    which, local = everywhere.get(address, ("", address))
    if host == "*":
        which, local = "all", "127.0.0.1"
    is_loopback = ipaddress.ip_address(local.partition("%")[0]).is_loopback
    # Clients know no name of loopback but localhost.
    url = f"http://{_bracketed('localhost' if host.lower() == 'localhost' else local)}:{port}"
    place = f"{_bracketed(address)}:{port}{which and f' ({which} addresses of this machine)'}"
    if is_loopback and not which:
        place = f"{url} (both auth URL and base URL)"
    reporter.note(f"dkimctl: serving on {place}; press Ctrl-C to stop")
    if which or not is_loopback:
        reporter.warn(
            "this is plain HTTP, and other machines can reach it; clients refuse http:// URLs, "
            "except on this machine (loopback)",
            hint="put a TLS proxy in front, and give its https:// URL to clients",
            code="plain_http",
        )
    create = f"dkimctl service client create --output {new_name('secret.txt')}{data_option(data)}"
    reporter.note(f"dkimctl: to create a client: {create}")
    if is_loopback:
        login = f"dkimctl login --auth-url {url} --base-url {url} --client-id ID"
        reporter.note(f"dkimctl: then log in{' on this machine' if which else ''}: {login}")
    # Say that the service is ready, as `Type=notify` of a unit expects it (sd_notify(3)).
    if path := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.connect(f"\0{path[1:]}" if path.startswith("@") else path)
            notified.send(b"READY=1")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
