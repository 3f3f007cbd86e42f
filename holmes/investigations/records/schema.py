"""The database tables of the server, for SQLite and PostgreSQL. Later versions only add tables and columns.

Times are floating-point seconds since the epoch, which both databases compare and index in the same way.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()
# SQLite auto-increments only columns of the type INTEGER.
_COUNTER = BigInteger().with_variant(Integer, "sqlite")

REPLICAS = Table(
    "holmes_replicas",
    METADATA,
    Column("id", String(200), primary_key=True),
    Column("version", String(64), nullable=False),
    Column("started_at", Float, nullable=False),
    Column("seen_at", Float, nullable=False),
)
KEYS = Table(
    "holmes_keys",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
INCIDENTS = Table(
    "holmes_incidents",
    METADATA,
    Column("id", String(40), primary_key=True),
    Column("group_key", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("severity", String(64)),
    Column("route", String(64), nullable=False),
    Column("labels", Text, nullable=False),
    Column("opened_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("closed_at", Float),
    Column("reopened", Integer, nullable=False, default=0),
    Column("root_cause", Text),
    Column("verdict", String(32)),
    Column("summary", Text),
    Column("closed_by", String(16)),
    Column("cluster", Text),
    Index("holmes_incidents_by_group", "group_key", "route"),
    Index("holmes_incidents_by_time", "updated_at"),
)
ALERTS = Table(
    "holmes_alerts",
    METADATA,
    Column("fingerprint", String(200), primary_key=True),
    Column("incident_id", String(40), nullable=False, index=True),
    Column("investigation_id", String(40)),
    Column("status", String(16), nullable=False),
    Column("labels", Text, nullable=False),
    Column("annotations", Text, nullable=False),
    Column("generator_url", Text),
    Column("cluster", Text),
    Column("starts_at", Float),
    Column("ends_at", Float),
    Column("received", Integer, nullable=False),
    Column("tries", Integer, nullable=False, default=0),
    # These columns are derived from the labels, for queries over many alerts.
    Column("name", Text),
    Column("severity", Text),
    Column("place", Text),
    Column("namespace", Text),
    Column("subject", Text),
    Column("first_seen", Float, nullable=False),
    Column("last_seen", Float, nullable=False),
    # For title queries over thousands of alerts. An index entry must not exceed PostgreSQL's limit of 2.7 kB.
    Index("holmes_alerts_firing", "incident_id", "status", "namespace", "name", "severity", "place", "fingerprint"),
    Index("holmes_alerts_by_subject", "incident_id", "subject"),
)
INVESTIGATIONS = Table(
    "holmes_investigations",
    METADATA,
    Column("id", String(40), primary_key=True),
    Column("incident_id", String(40), index=True),
    Column("state", String(16), nullable=False, index=True),
    Column("source", String(64), nullable=False),
    Column("title", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("route", String(64), nullable=False),
    Column("namespace", Text),
    Column("model", Text),
    Column("max_cost", Float),
    Column("without_llm", Text),
    Column("cluster", Text),
    # 1 if an alert started the investigation and an LLM may answer, so that it counts towards hourly limits.
    Column("counted", Integer, nullable=False, default=0),
    Column("created_at", Float, nullable=False, index=True),
    Column("started_at", Float),
    Column("finished_at", Float),
    Column("attempts", Integer, nullable=False, default=0),
    Column("steps_before", Integer, nullable=False, default=0),
    Column("barren_attempts", Integer, nullable=False, default=0),
    Column("replica", String(200)),
    Column("workflow_id", String(80)),
    Column("answer", Text),
    Column("error", Text),
    Column("answered_by", Text),
    Column("verdict", String(32)),
    Column("verdict_by", String(16)),
    Column("summary", Text),
    Column("stats", Text, nullable=False),
    Column("cost", Float, nullable=False, default=0.0),
)
CHATS = "chats"
"""Value of `investigation_id` for chat costs, because chats do not belong to an investigation."""
STEPS = Table(
    "holmes_steps",
    METADATA,
    Column("investigation_id", String(40), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("result", LargeBinary, nullable=False),
    Column("cost", Float, nullable=False, default=0.0),
    Column("finished_at", Float, nullable=False),
    Index("holmes_steps_by_time", "finished_at", "cost"),
)
EVENTS = Table(
    "holmes_events",
    METADATA,
    Column("id", _COUNTER, primary_key=True, autoincrement=True),
    Column("investigation_id", String(40), nullable=False),
    Column("key", String(200), nullable=False),
    Column("name", String(64), nullable=False),
    Column("at", Float, nullable=False),
    Column("data", Text, nullable=False),
    UniqueConstraint("investigation_id", "key", name="holmes_events_once"),
    Index("holmes_events_in_order", "investigation_id", "id"),
)
RESULTS = Table(
    "holmes_results",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("media_type", String(100), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("stored_at", Float, nullable=False),
    Column("used_at", Float, nullable=False, index=True),
)
DELIVERIES = Table(
    "holmes_deliveries",
    METADATA,
    Column("id", _COUNTER, primary_key=True, autoincrement=True),
    Column("key", String(200), nullable=False, unique=True),
    Column("destination", String(64), nullable=False),
    Column("event", String(32), nullable=False),
    Column("incident_id", String(40), nullable=False, index=True),
    Column("investigation_id", String(40)),
    Column("state", String(16), nullable=False, index=True),
    Column("attempts", Integer, nullable=False, default=0),
    Column("created_at", Float, nullable=False),
    Column("due_at", Float, nullable=False),
    Column("claimed_until", Float),
    Column("delivered_at", Float),
    Column("last_error", Text),
    Column("reference", Text),
    Column("gave_up", Boolean, nullable=False, default=False),
)
