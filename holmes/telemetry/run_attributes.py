"""What the caller of `readers.traced` knows of a run and no event says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAttributes:
    """What a trace says of a run. `source` is for example `alertmanager`, `api` or `cli`; `model` the one asked for."""

    source: str
    conversation_id: str | None = None
    model: str | None = None
