"""What an investigation has done already: finished steps and events, kept under their names.

The steps of DBOS are numbered in the order in which they run, so that a workflow whose order changes (another version,
a compaction that comes earlier) cannot go on. Ours go by name, which the loop makes unique: what is recorded is never
done again, and an event that a later attempt says again is kept once.

Results of steps are JSON, so that another replica, also of another version, can read them: a field that a newer version
added takes its default when it is missing, one that is not known any more is left out. Refuses every value that no step
returns.
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
            Image,
            ModelReply,
            Reasoning,
            RequestStats,
            SpillOutcome,
            StoredResult,
            Text,
            ToolCall,
            ToolMessage,
            ToolOutcome,
        )
    },
    tagged=True,
)


class UnreadableStep(ValueError):
    """A recorded result that this version cannot read; the step is run again."""


def step_to_bytes(result: object) -> bytes:
    """The JSON of a result. Raises `TypeError` for a value that no step returns."""
    return json.dumps(_STEPS.encode(result), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def step_from_bytes(content: bytes) -> object:
    """The result again; equal to what was recorded. Raises `UnreadableStep`."""
    try:
        return _STEPS.decode_tagged(json.loads(content.decode("utf-8", "surrogatepass")))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UnreadableStep(f"{type(error).__name__}: {error}") from error


def cost_of(result: object) -> float:
    """US dollars that a step was charged for: replies of models cost, nothing else does."""
    return result.stats.cost if isinstance(result, ModelReply) else 0.0


# A finished step was paid for: the database may take long to come back before it is given up.
_RECORD_WAIT_SECONDS = 600.0


class LostInvestigation(Exception):
    """Another replica took this investigation over, or it was cancelled: whoever runs it must stop at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who runs an investigation: the replica, and which attempt it is."""

    investigation_id: InvestigationId
    replica: str
    attempt: int


class Journal:
    """Steps and events of one attempt at an investigation."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self._database = database
        self._lease = lease

    async def recorded_steps(self) -> Mapping[str, bytes]:
        """What earlier attempts finished, by name."""
        query = select(STEPS.c.name, STEPS.c.result).where(STEPS.c.investigation_id == self._lease.investigation_id)
        rows = await self._database.transaction(lambda connection: connection.execute(query).all())
        return {row.name: bytes(row.result) for row in rows}

    async def record_step(self, name: str, result: object) -> object:
        """Keep the result of a step; if somebody else recorded one meanwhile, that one counts and is returned.

        Raises `LostInvestigation` when this attempt is not the present one, after the step was kept all the same.
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
        """Keep what a step cost that failed all the same. It is done again when the investigation is."""
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
        """Raises `LostInvestigation` when this attempt is not the present one: nothing may be begun any more."""
        if not await self._database.transaction(self._is_mine, wait_seconds=_RECORD_WAIT_SECONDS):
            raise LostInvestigation(self._lease.investigation_id)

    async def add_events(self, events: tuple[tuple[str, str, str], ...]) -> None:
        """Keep events as (key, name, JSON); one whose key is there already is the same event of an earlier attempt."""
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
    """Insert a row unless there is one with its key. Returns whether it was inserted."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table).values(**values).on_conflict_do_nothing()
    # Without the option PostgreSQL's count is not kept, and every row would look as if it had been there.
    return connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount > 0


_PASSING: Final = frozenset({"text_delta", "attempt_discarded"})
"""What is worth seeing only while it happens."""

_LONGEST_ID: Final = 100


class EventRecorder:
    """Numbers events of a name in the order in which they come.

    An attempt that takes over says all events of the finished steps once more, in the same order and with the same
    names, so they get the same keys, and what has been kept already is not kept twice. `prefix` tells another run of
    the same investigation apart.
    """

    def __init__(self, journal: Journal, prefix: str = "") -> None:
        self._journal = journal
        self._prefix = prefix
        self._seen: Counter[str] = Counter()

    async def keep(self, event: AgentEvent) -> None:
        """Keep what `event` says on the wire, if it is worth it."""
        kept: list[tuple[str, str, str]] = []
        for each in wire_events(event):
            if each.name in _PASSING:
                continue
            key = self._key(each.name, each.data)
            kept.append((key, each.name, json.dumps(each.data, ensure_ascii=False, separators=(",", ":"))))
        if kept:
            await self._journal.add_events(tuple(kept))

    async def notice(self, key: str, text: str) -> bool:
        """Keep a line for people; `key` tells it from other notices. Returns whether it is new."""
        is_new = not self._seen[key]
        self._seen[key] += 1
        await self._journal.add_events(((f"{NOTICE}:{key}", NOTICE, json.dumps({"text": text}, ensure_ascii=False)),))
        return is_new

    def _key(self, name: str, data: JsonObject) -> str:
        call = data.get("tool_call_id") or data.get("id")
        base = f"{name}:{_short(call)}" if isinstance(call, str) else name  # concurrent tools end in any order
        self._seen[base] += 1
        return f"{self._prefix}{base}:{self._seen[base]}"


def _short(call: str) -> str:
    """An id that fits into a key; providers make up ids of any length."""
    return call if len(call) <= _LONGEST_ID else hashlib.sha256(call.encode("utf-8", "replace")).hexdigest()
