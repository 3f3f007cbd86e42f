"""Reads the last lines of some logs for the rules, within limits on number, size and time.

If a log cannot be read, the scan reports why and continues. Users and models search logs with the toolset
`kubernetes/logs` instead.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.kubernetes.errors import ApiError
from holmes.kubernetes.kinds import api_path
from holmes.values.errors import HolmesError
from holmes.values.expressions import expression
from holmes.values.findings import NotChecked
from holmes.values.steps import concurrently
from holmes.values.texts import without_last_word

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from holmes.kubernetes.client import ClusterClient
    from holmes.kubernetes.cluster_state import LogKey

    ReadStored: TypeAlias = Callable[[Sequence[LogKey], "LogLimits"], Awaitable[Mapping[LogKey, str]]]

# The kubelet returns this line with status 200 and without a time if the container was already removed.
_LOG_IS_GONE: Final = expression(r"unable to retrieve container logs for [a-z-]+://[0-9a-f]+\s*$")

_FITTING_PERCENT: Final = 70
"""The share of the received lines to request again, because newer lines can be longer."""

_THERE_IS_NONE: Final = 400
"""The response status if a container never ran or has no previous instance. In this case, no log exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """Limits for one scan. `logs` is the maximum number of logs.

    `lines` and `bytes` apply to each log, and `seconds` applies to all logs together.
    """

    logs: int = 20
    lines: int = 200
    bytes: int = 128 * 1024
    seconds: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReading:
    """The logs that were read, the number of requests, and the logs that could not be read."""

    logs: dict[LogKey, str]
    requests: int
    unread: tuple[NotChecked, ...]


async def read_logs(
    client: ClusterClient, wanted: Sequence[LogKey], limits: LogLimits, stored: ReadStored | None = None
) -> LogReading:
    """Read the `wanted` logs, but at most `limits.logs` of them. A log that cannot be read is listed in `unread`.

    `stored` reads logs that the nodes do not have, where a source of logs has them.
    """
    chosen = tuple(dict.fromkeys(wanted))
    reading, left_out = chosen[: limits.logs], chosen[limits.logs :]
    deadline = asyncio.get_running_loop().time() + limits.seconds
    read = await concurrently(_read(client, key, limits, deadline) for key in reading)
    logs = {key: text for key, (text, _) in zip(reading, read, strict=True) if text}
    missing = [key for key in reading if key not in logs]
    if stored is not None and missing:
        logs |= await stored(missing, limits)
    unread = [
        NotChecked(what=_shown(key), why=why)
        for key, (_, why) in zip(reading, read, strict=True)
        if why and key not in logs
    ]
    if left_out:
        what = f"{len(left_out)} more logs, for example the {_shown(left_out[0])}"
        unread.append(NotChecked(what=what, why=f"at most {limits.logs} logs are read"))
    return LogReading(logs=logs, requests=len(reading), unread=tuple(unread))


async def _read(client: ClusterClient, key: LogKey, limits: LogLimits, deadline: float) -> tuple[str, str]:
    """Return the text of a log, and why it could not be read. Both are empty if the instance never existed.

    The API server cuts the newest lines if a log has too many bytes, so such a log is read again with fewer lines.
    """
    pod = key.pod
    params = {
        "container": key.container,
        "tailLines": str(limits.lines),
        "limitBytes": str(limits.bytes),
        "timestamps": "true",
    }
    if key.previous:
        params["previous"] = "true"
    body = bytearray()
    try:
        path = api_path("v1", "pods", namespace=pod.namespace, name=pod.name, subresource="log")
        async with asyncio.timeout_at(deadline), client.stream_text(path, params) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) >= limits.bytes:
                    break
    except TimeoutError:
        return "", f"reading the logs took longer than {limits.seconds:g} s"
    except HolmesError as error:
        if isinstance(error, ApiError) and error.status_code == _THERE_IS_NONE:
            return "", ""
        return "", " ".join(str(error).split())
    received = body.count(b"\n")
    if len(body) >= limits.bytes and 0 < received < limits.lines:
        fewer = max(1, received * _FITTING_PERCENT // 100)
        return await _read(client, key, replace(limits, lines=fewer), deadline)
    text = body[: limits.bytes].decode("utf-8", "replace")
    text = without_last_word(text) if len(body) >= limits.bytes else text
    return ("", "the node has already deleted this log") if _LOG_IS_GONE.match(text) else (text, "")


def _shown(key: LogKey) -> str:
    previous = " (previous)" if key.previous else ""
    return f"log of container {key.container} of {key.pod}{previous}"
