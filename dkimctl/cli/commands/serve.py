"""`dkimctl serve`: the embedded service over HTTP."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli.embedded_service import needs_service_extra, open_served_store
from dkimctl.cli.options import App, DataOption, examples
from dkimctl.cli.output.serving import announce
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import ExitCode, UsageError
from dkimctl.service.http.log_output import LogFormat

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from dkimctl.service.location import Location
    from dkimctl.service.server.listening import Listening

app = App()


@app.command(
    epilog=examples(
        "dkimctl serve",
        "dkimctl serve --port 8025 --data service.db",
        "dkimctl serve --host 0.0.0.0",
        "dkimctl serve --workers 4",
    )
)
def serve(
    ctx: typer.Context,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0: all IPv4 addresses."),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen on; 0: a free one."),
    ] = 8025,
    data: DataOption = None,
    max_domains: Annotated[
        int, typer.Option(metavar="N", min=1, help="Most domains in one request.")
    ] = 50,
    threads: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=64,
            help="Requests that each process answers at the same time, 1 to 64.",
        ),
    ] = 8,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Processes, 1 to 64; not on Windows.")
    ] = 1,
    log_format: Annotated[
        LogFormat,
        typer.Option(
            "--log-format",
            metavar="FORMAT",
            help="Format of the log on stderr: text or json; --quiet leaves out the requests.",
        ),
    ] = LogFormat.TEXT,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="IP address or network of a proxy whose X-Forwarded-For to believe; "
            "may be repeated.",
        ),
    ] = None,
    metrics_from: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics-from",
            metavar="ADDRESS",
            help="IP address or network that may read /metrics (default: this machine); "
            "may be repeated.",
        ),
    ] = None,
) -> int:
    """Run the embedded service over HTTP, until Ctrl-C.

    It is for other machines or tools. The service does not support TLS: put a TLS proxy in front
    of it for access over a network.
    """
    with needs_service_extra():
        from dkimctl.service.app import create_app
        from dkimctl.service.http.log_output import log_to_stderr
        from dkimctl.service.http.metrics_sharing import require_directory, sharing_metrics
        from dkimctl.service.http.monitoring import read_monitoring
        from dkimctl.service.server.listening import Listening
    if workers > 1:
        _require_workers()
    require_directory()
    requests = None if ctx.obj.quiet else log_format
    monitoring = read_monitoring(requests, trusted_proxy or (), metrics_from or ())
    make_app = partial(
        create_app,
        max_domains=max_domains,
        max_waiting=max(1, threads - max(2, threads // 4)),
        key_threads=max(1, (os.cpu_count() or 1) // workers),
        monitoring=monitoring,
    )
    with closing(open_served_store(data)) as store:
        listening = Listening(host, port)
        log_to_stderr(log_format)
        if workers == 1:
            service = make_app(store)
            _serve(ctx.obj, service, listening, threads, data)
            return ExitCode.OK
    from dkimctl.service.server.workers import serve_with_workers

    with sharing_metrics():
        serve_with_workers(
            listening,
            workers,
            threads,
            load=lambda: make_app(open_served_store(data)),
            ready=lambda: announce(ctx.obj, listening, data),
        )
    return ExitCode.OK


def _serve(
    reporter: Reporter,
    service: WSGIApplication,
    listening: Listening,
    threads: int,
    data: Location | None,
) -> None:
    """Serve in this process until SIGTERM or Ctrl-C."""
    from dkimctl.service.server.server import Server

    with closing(listening):
        server = Server(service, listening.sockets, threads)
        if server.threads < threads:
            reporter.warn(
                f"the system allows only {server.threads} of {threads} worker threads (ulimit -u)"
            )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.stop())
        announce(reporter, listening, data)
        server.run()


def _require_workers() -> None:
    """Raises UsageError if there cannot be several processes."""
    if sys.platform == "win32":
        raise UsageError("--workers does not work on Windows", hint="leave it out")
    try:
        import gunicorn  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError(
            "--workers needs gunicorn, which is not installed",
            hint="run `pip install 'dkimctl[service]'`",
        ) from None
