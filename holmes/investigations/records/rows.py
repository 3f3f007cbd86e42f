"""Between rows of the database and values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from holmes.investigations.records.values import KnownAlert
from holmes.values.codec import Codec
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from sqlalchemy import Row

T = TypeVar("T")


def moment(seconds: float) -> datetime:
    """A time of the database as an aware datetime."""
    return datetime.fromtimestamp(seconds, UTC)


def optional_moment(seconds: float | None) -> datetime | None:
    """Like `moment`, for what may be missing."""
    return None if seconds is None else moment(seconds)


def seconds_of(at: datetime | None) -> float | None:
    """A time as the database keeps it."""
    return None if at is None else at.timestamp()


def stats_to_json(stats: RequestStats) -> str:
    return json.dumps(_STATS.encode(stats))


def labels_to_json(labels: object) -> str:
    """Labels with their names in order, so that equal labels are equal text."""
    return json.dumps(labels, sort_keys=True, ensure_ascii=False)


def record_of(kind: type[T], row: Row[tuple[object, ...]]) -> T:
    """A row as the dataclass whose fields have the names of its columns."""
    return _ROWS.decode(kind, row._asdict())


def known_alert_of(row: Row[tuple[object, ...]]) -> KnownAlert:
    columns = row._asdict()
    return _ROWS.decode(KnownAlert, {**columns, "alert": columns})


def _stats_of(text: str) -> RequestStats:
    return _STATS.decode(RequestStats, json.loads(text))


_STATS: Final = Codec()
_ROWS: Final = Codec(converters={datetime: moment, Mapping[str, str]: json.loads, RequestStats: _stats_of})
