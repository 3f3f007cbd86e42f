"""Runs a kubeconfig's exec plugin (`aws eks get-token`, `gke-gcloud-auth-plugin`, …) and reads what it prints.

The plugin sees the `Environment` and its own variables, has no terminal, and ends with its whole process group when it
takes too long or the call is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holmes.kubernetes.fields import child, text
from holmes.values.errors import masked
from holmes.values.texts import shortened, without_last_word

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping

    from holmes.kubernetes.access import ClusterAccess, ExecPlugin
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject

TIMEOUT_SECONDS = 30.0
_OUTPUT_LIMIT_BYTES = 1_000_000
_LONGEST_COMPLAINT = 300
_LOGIN_ADVICE = "run it by hand to see more, or log in again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecCredential:
    """What a plugin printed. `expires_at_seconds` is seconds since the epoch, None when it did not say."""

    token: str | None
    certificate: bytes | None
    key: bytes | None
    expires_at_seconds: float | None


async def run_exec_plugin(
    plugin: ExecPlugin, access: ClusterAccess, environment: Environment, *, timeout_seconds: float = TIMEOUT_SECONDS
) -> ExecCredential:
    """Run `plugin` and return its credentials. Raises `ClusterUnreachable` naming the command when it has none."""
    if plugin.needs_terminal:
        raise access.unreachable(
            f"the credential plugin {plugin.command!r} wants a terminal (interactiveMode: Always)",
            "log in with kubectl first or use a plugin that works without one",
        )
    variables = _variables(plugin, environment)
    process = await _start(plugin, access, variables)
    try:
        async with asyncio.timeout(timeout_seconds):
            output, complaint = await asyncio.gather(_bounded(process.stdout), _bounded(process.stderr))
            code = await process.wait()
    except TimeoutError as error:
        raise access.unreachable(
            f"the credential plugin {plugin.command!r} did not finish within {timeout_seconds:g} s", _LOGIN_ADVICE
        ) from error
    finally:
        await _end(process)
    if code != 0:
        last = masked(_text(complaint)).strip().splitlines()[-1:]
        said = shortened("".join(last), _LONGEST_COMPLAINT)
        why = f"the credential plugin {plugin.command!r} failed with exit code {code}: {said}"
        raise access.unreachable(why.rstrip(": "), _LOGIN_ADVICE)
    return _parsed(plugin, access, output)


def _variables(plugin: ExecPlugin, environment: Environment) -> dict[str, str]:
    spec: dict[str, JsonObject | bool] = {"interactive": False}
    if plugin.cluster_info is not None:
        spec["cluster"] = plugin.cluster_info
    info = json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})
    return {**environment.as_dict(), **dict(plugin.variables), "KUBERNETES_EXEC_INFO": info}


async def _start(plugin: ExecPlugin, access: ClusterAccess, variables: Mapping[str, str]) -> Process:
    command = plugin.command
    if "/" in command and not Path(command).is_absolute():
        command = str(plugin.directory / command)
    found = shutil.which(command, path=variables.get("PATH", os.defpath))
    if found is None:
        hint = plugin.install_hint or "install it or correct the kubeconfig"
        raise access.unreachable(f"the credential plugin {plugin.command!r} is not installed", hint)
    try:
        return await asyncio.create_subprocess_exec(
            found,
            *plugin.arguments,
            env=dict(variables),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        why = f"the credential plugin {plugin.command!r} cannot be started: {error.strerror}"
        raise access.unreachable(why, "correct the kubeconfig") from error


async def _bounded(stream: asyncio.StreamReader | None) -> bytes:
    """What the stream says until its end; beyond the limit it is read on, but forgotten."""
    kept = bytearray()
    while stream is not None and (piece := await stream.read(65536)):
        kept += piece[: _OUTPUT_LIMIT_BYTES - len(kept)]
    return bytes(kept)


def _text(complaint: bytes) -> str:
    text = complaint.decode("utf-8", "replace")
    return without_last_word(text) if len(complaint) >= _OUTPUT_LIMIT_BYTES else text


async def _end(process: Process) -> None:
    """Leave nothing behind, also when the plugin started helpers of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await asyncio.shield(process.wait())


def _parsed(plugin: ExecPlugin, access: ClusterAccess, output: bytes) -> ExecCredential:
    try:
        document = json.loads(output)
    except (ValueError, RecursionError) as error:
        why = f"the credential plugin {plugin.command!r} printed no JSON"
        raise access.unreachable(why, _LOGIN_ADVICE) from error
    version = text(document, "apiVersion")
    if version != plugin.api_version:
        why = (
            f"the credential plugin {plugin.command!r} speaks {version!r}, the kubeconfig wants {plugin.api_version!r}"
        )
        raise access.unreachable(why, "update the plugin or the kubeconfig")
    status = child(document, "status")
    token, certificate = text(status, "token") or None, text(status, "clientCertificateData")
    key = text(status, "clientKeyData")
    if token is None and not (certificate and key):
        why = f"the credential plugin {plugin.command!r} printed neither a token nor a certificate with its key"
        raise access.unreachable(why, _LOGIN_ADVICE)
    return ExecCredential(
        token=token,
        certificate=certificate.encode() or None,
        key=key.encode() or None,
        expires_at_seconds=_epoch_seconds(text(status, "expirationTimestamp")),
    )


def _epoch_seconds(timestamp: str) -> float | None:
    try:
        return datetime.fromisoformat(timestamp).timestamp() if timestamp else None
    except ValueError:
        return None
