"""`dkimctl serve`: the embedded service over HTTP."""

from __future__ import annotations

import signal
from contextlib import closing
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dkimctl.cli.command import App
from dkimctl.cli.embedded_service import needs_service_extra, open_served_store
from dkimctl.cli.options.shared import DataOption, examples
from dkimctl.cli.output.serving import announce
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import ExitCode
from dkimctl.service.http.log_output import LogFormat
from dkimctl.settings.values import short_duration

if TYPE_CHECKING:
    from dkimctl.service.faults.plan import Plan

app = App()


@app.command(
    epilog=examples(
        "dkimctl serve",
        "dkimctl serve --port 8025 --data service.db",
        "dkimctl serve --host 0.0.0.0",
        "dkimctl serve --faults faults.yaml",
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
        int, typer.Option(metavar="N", min=1, max=64, help="Worker threads, 1 to 64.")
    ] = 8,
    faults: Annotated[
        str | None,
        typer.Option(
            "--faults",
            metavar="FILE",
            help="Inject faults into registration requests as described in FILE, to test clients.",
        ),
    ] = None,
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
        from dkimctl.service.faults.middleware import FaultInjector
        from dkimctl.service.faults.plan import read_plan
        from dkimctl.service.http.log_output import log_to_stderr
        from dkimctl.service.http.monitoring import read_monitoring
        from dkimctl.service.server.server import Server, hang_up
    requests = None if ctx.obj.quiet else log_format
    monitoring = read_monitoring(requests, trusted_proxy or (), metrics_from or ())
    plan = read_plan(faults, read_duration=short_duration) if faults is not None else None
    with closing(open_served_store(data)) as store:
        service = create_app(store, max_domains=max_domains, monitoring=monitoring)
        if plan:
            _announce_faults(ctx.obj, plan)
            service = FaultInjector(service, plan, hang_up)
        server = Server(service, host, port, threads)
        if server.threads < threads:
            ctx.obj.warn(
                f"the system allows only {server.threads} of {threads} worker threads (ulimit -u)"
            )
        announce(ctx.obj, server, data)
        log_to_stderr(log_format)
        signal.signal(signal.SIGTERM, _stop)
        with closing(server):
            server.run()
    return ExitCode.OK


def _announce_faults(reporter: Reporter, plan: Plan) -> None:
    shares = (f"{kind} {100 * share:.3g}%" for kind, share in plan.faults.items())
    reporter.note(f"dkimctl: faults with seed {plan.seed}: {', '.join(shares) or 'none'}")


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit
