"""Stores the finished steps and the events of an investigation under unique names.

DBOS numbers its steps in execution order, and cannot resume a workflow if this order changes. Holmes gives each step a
unique name instead. A recorded step therefore never runs again, and a repeated event is stored once. Step results are
JSON that other replicas and versions can read (see `Codec`).
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from holmes.core.tools_utils.tool_context_window_limiter import SpillOutcome, ToolOutcome
from holmes.investigations.records.schema import EVENTS, INVESTIGATIONS, STEPS
from holmes.investigations.records.values import storable
from holmes.investigations.records.wire_events import NOTICE, wire_events
from holmes.values.charts import Chart, ChartLine, ChartMark, Threshold
from holmes.values.codec import Codec
from holmes.values.messages import AssistantMessage, Image, Reasoning, StoredResult, Text, ToolCall, ToolMessage
from holmes.values.model import ModelReply
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Table

    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import InvestigationId
    from holmes.values.events import AgentEvent
    from holmes.values.json_types import JsonObject

_STEPS: Final = Codec(
    tags={
        each: ("$type", each.__name__)
        for each in (
            AssistantMessage,
            Chart,
            ChartLine,
            ChartMark,
            Image,
            ModelReply,
            Reasoning,
            RequestStats,
            SpillOutcome,
            StoredResult,
            Text,
            Threshold,
            ToolCall,
            ToolMessage,
            ToolOutcome,
        )
    },
    tagged=True,
)


class UnreadableStep(ValueError):
    """Raised for a recorded result in a format that this version cannot read. The step must run again."""


def step_to_bytes(result: object) -> bytes:
    """Encode a step result as JSON. Raises `TypeError` for a type that steps do not return."""
    return json.dumps(_STEPS.encode(result), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def step_from_bytes(content: bytes) -> object:
    """Decode a step result. Raises `UnreadableStep`."""
    try:
        return _STEPS.decode_tagged(json.loads(content.decode("utf-8", "surrogatepass")))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UnreadableStep(f"{type(error).__name__}: {error}") from error


def cost_of(result: object) -> float:
    """Return the cost of a step in US dollars. Only model replies have a cost."""
    return result.stats.cost if isinstance(result, ModelReply) else 0.0


# The wait is long, because the result of a paid model call must not be lost.
_RECORD_WAIT_SECONDS = 600.0


class LostInvestigation(Exception):
    """Raised if the attempt must stop, because the investigation was cancelled or another replica took it over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Identifies an attempt by its investigation, its replica and its number."""

    investigation_id: InvestigationId
    replica: str
    attempt: int


class Journal:
    """Stores the steps and events of one attempt to run an investigation."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self._database = database
        self._lease = lease

    async def recorded_steps(self) -> Mapping[str, bytes]:
        """Read the results of the steps that earlier attempts finished, by step name."""
        query = select(STEPS.c.name, STEPS.c.result).where(STEPS.c.investigation_id == self._lease.investigation_id)
        rows = await self._database.transaction(lambda connection: connection.execute(query).all())
        return {row.name: bytes(row.result) for row in rows}

    async def record_step(self, name: str, result: object) -> object:
        """Record and return the result of a step, or return the result that another replica recorded first.

        Raises `LostInvestigation` after recording if this attempt is no longer current.
        """
        content = step_to_bytes(result)

        def record(connection: Connection) -> tuple[bytes, bool]:
            insert_once(
                connection,
                STEPS,
                {
                    "investigation_id": self._lease.investigation_id,
                    "name": name,
                    "result": content,
                    "cost": cost_of(result),
                    "finished_at": time.time(),
                },
            )
            query = select(STEPS.c.result).where(
                STEPS.c.investigation_id == self._lease.investigation_id, STEPS.c.name == name
            )
            return bytes(connection.execute(query).scalar_one()), self._is_mine(connection)

        kept, mine = await self._database.transaction(record, wait_seconds=_RECORD_WAIT_SECONDS)
        if not mine:
            raise LostInvestigation(self._lease.investigation_id)
        return result if kept == content else step_from_bytes(kept)

    async def record_cost(self, name: str, cost: float) -> None:
        """Record the cost of a failed step. A later attempt repeats the step."""
        values = {
            "investigation_id": self._lease.investigation_id,
            "name": f"{name}/failed-{uuid.uuid4().hex[:12]}",
            "result": b"null",
            "cost": cost,
            "finished_at": time.time(),
        }
        await self._database.transaction(
            lambda connection: insert_once(connection, STEPS, values), wait_seconds=_RECORD_WAIT_SECONDS
        )

    async def require_mine(self) -> None:
        """Raise `LostInvestigation` if this attempt is no longer current."""
        if not await self._database.transaction(self._is_mine, wait_seconds=_RECORD_WAIT_SECONDS):
            raise LostInvestigation(self._lease.investigation_id)

    async def add_events(self, events: tuple[tuple[str, str, str], ...]) -> None:
        """Store events, each of which is a tuple (key, name, JSON).

        Skips events whose key already exists, because an earlier attempt stored them.
        """
        now = time.time()

        def add(connection: Connection) -> None:
            for key, name, data in events:
                values = {
                    "investigation_id": self._lease.investigation_id,
                    "key": key,
                    "name": name,
                    "at": now,
                    "data": storable(data),
                }
                insert_once(connection, EVENTS, values)

        await self._database.transaction(add, wait_seconds=_RECORD_WAIT_SECONDS)

    def _is_mine(self, connection: Connection) -> bool:
        columns = INVESTIGATIONS.c
        query = select(columns.id).where(
            columns.id == self._lease.investigation_id,
            columns.state == "running",
            columns.replica == self._lease.replica,
            columns.attempts == self._lease.attempt,
        )
        return connection.execute(query).first() is not None


def insert_once(connection: Connection, table: Table, values: Mapping[str, object]) -> bool:
    """Insert a row unless its key already exists. Returns whether the row was inserted."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table).values(**values).on_conflict_do_nothing()
    # Without this option, PostgreSQL does not report how many rows were inserted.
    return connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount > 0


_PASSING: Final = frozenset({"text_delta", "attempt_discarded"})
"""Names of events that are not stored, because only live readers need them."""

_LONGEST_ID: Final = 100


class EventRecorder:
    """Stores events under keys that consist of the event name and a number.

    A later attempt repeats all events of finished steps in the same order, so these events get the same keys and are
    stored once. `prefix` distinguishes several runs within one investigation.
    """

    def __init__(self, journal: Journal, prefix: str = "") -> None:
        self._journal = journal
        self._prefix = prefix
        self._seen: Counter[str] = Counter()

    async def keep(self, event: AgentEvent) -> None:
        """Store the wire form of `event`, unless only live readers need it."""
        kept: list[tuple[str, str, str]] = []
        for each in wire_events(event):
            if each.name in _PASSING:
                continue
            key = self._key(each.name, each.data)
            kept.append((key, each.name, json.dumps(each.data, ensure_ascii=False, separators=(",", ":"))))
        if kept:
            await self._journal.add_events(tuple(kept))

    async def notice(self, key: str, text: str) -> bool:
        """Store a notice for the user under `key`. Returns whether this attempt stores it for the first time."""
        is_new = not self._seen[key]
        self._seen[key] += 1
        await self._journal.add_events(((f"{NOTICE}:{key}", NOTICE, json.dumps({"text": text}, ensure_ascii=False)),))
        return is_new

    def _key(self, name: str, data: JsonObject) -> str:
        call = data.get("tool_call_id") or data.get("id")
        base = f"{name}:{_short(call)}" if isinstance(call, str) else name  # concurrent tool calls finish in any order
        self._seen[base] += 1
        return f"{self._prefix}{base}:{self._seen[base]}"


def _short(call: str) -> str:
    """Shorten the id of a tool call for a key, because providers create ids of any length."""
    return call if len(call) <= _LONGEST_ID else hashlib.sha256(call.encode("utf-8", "replace")).hexdigest()
