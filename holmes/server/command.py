"""Implements `holmes serve`, which serves the HTTP API and the web pages until a signal arrives.

The command prints one line with the server URL to standard output, and logs to standard error. Without a key, the
server listens on loopback only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.app.cluster import ClusterChoice

_PATH = click.Path(path_type=Path)
_EXTRA: Final = "holmes serve requires additional packages: pip install 'holmes[server]'"
_EXTRA_MODULES: Final = ("fastapi", "dbos", "sqlalchemy", "nh3", "markdown_it", "prometheus_client", "multipart")


@click.command()
@click.option("--host", help="Listen on this address. Default: loopback, or all addresses if a key is set.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="Listen on this port; 0 selects a free port. Default: 5050."
)
@click.option("--model", help="Use this model: a name from the model list or a litellm model name.")
@click.option("--config", type=_PATH, help="Read this config file. Default: ~/.holmes/config.yaml.")
@click.option("--cluster", "cluster_name", help="Serve only this cluster from `clusters` in the configuration.")
@click.option("--kubeconfig", type=_PATH, help="Use this kubeconfig file.")
@click.option("--context", "kube_context", help="Use this kubeconfig context.")
@click.option("--snapshot", type=_PATH, help="Use a recording instead of a live cluster.")
@click.option("--demo", is_flag=True, help="Use the bundled demo recording.")
@click.pass_context
def serve(
    context: click.Context,
    /,
    *,
    config: Path | None,
    cluster_name: str | None,
    snapshot: Path | None,
    demo: bool,
    **overrides: object,
) -> None:
    """Answer questions and investigate alerts over HTTP, and show the results on web pages.

    Set HOLMES_API_KEY to accept requests from other machines. After Ctrl-C or SIGTERM, the server waits for running
    chats and exits.
    """
    # Imported here and in `_run`, because `holmes serve --help` does not need these modules.
    from holmes.app.cluster import ClusterChoice

    by_kubeconfig = any(overrides.get(each) for each in ("kubeconfig", "kube_context"))
    choice = ClusterChoice(snapshot=snapshot, demo=demo, name=cluster_name, by_kubeconfig=by_kubeconfig)
    if choice.clash:
        raise click.UsageError(choice.clash)
    _require_extra()
    keys = {"host": "server.host", "port": "server.port"}
    given = {keys.get(name, name): value for name, value in overrides.items()}
    context.exit(_run(config, given, choice))


def _require_extra() -> None:
    """Check that all packages of the extra `server` are installed. Raises `ConfigError`."""
    import importlib.util

    from holmes.values.errors import ConfigError

    if missing := [name for name in _EXTRA_MODULES if importlib.util.find_spec(name) is None]:
        raise ConfigError(f"{_EXTRA} (missing: {', '.join(missing)})")


def _run(config: Path | None, overrides: Mapping[str, object], choice: ClusterChoice) -> int:
    import asyncio
    import logging

    from holmes.app.redaction import make_redactor
    from holmes.server.listening import listen
    from holmes.server.logs import set_up_logs
    from holmes.server.running import ServerJob, run_server
    from holmes.server.work_process import work_process
    from holmes.settings.load import load_settings
    from holmes.settings.process import process_environment
    from holmes.settings.server import blank_keys

    environment = process_environment()
    settings = load_settings(environment, config, overrides)
    redactor = make_redactor(settings)
    set_up_logs(environment.get("LOG_LEVEL", "INFO"), redactor)
    for warning in settings.warnings():
        logging.getLogger(__name__).warning("%s", warning)
    for name in blank_keys(environment):
        logging.getLogger(__name__).warning("%s is empty and is treated as unset", name)
    # Fork before the socket is opened. Otherwise, the investigation process would inherit the socket and keep it open.
    with work_process(redactor) as worker:
        listener = listen(settings.server)
        return asyncio.run(run_server(ServerJob(settings, choice, redactor, worker), listener, _say))


def _say(line: str) -> None:
    click.echo(line)  # `click.echo` flushes, and ignores a closed standard output
