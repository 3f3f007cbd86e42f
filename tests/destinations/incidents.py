"""News for the tests of destinations: a pod that crashes in the namespace `shop`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from holmes.destinations.destination import AlertNews, IncidentNews, InvestigationNews, NewsKind

OPENED_AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PAGE = "https://holmes.example"

RUNNING = InvestigationNews(id="inv1", state="running", link=f"{PAGE}/investigations/inv1")
ANSWERED = replace(
    RUNNING,
    state="answered",
    answer="**Root cause:** the container is killed at its limit of 64Mi.\n\n```\nOOMKilled <137>\n```\n",
    root_cause="the container is killed at its limit of 64Mi.",
    verdict="cause_found",
    verdict_by="rules",
    summary="the container is killed at its limit of 64Mi.",
    model="openai/gpt-5",
    cost=0.0312,
    started_at=OPENED_AT,
    finished_at=OPENED_AT + timedelta(seconds=42),
)
_AFTER_THE_ANSWER = frozenset({"answered", "resolved", "reopened"})
FAILED = replace(RUNNING, state="failed", error="The provider refused the key.")


def news(kind: NewsKind = "opened", **changes: object) -> IncidentNews:
    """What a destination hears at each moment of the incident's life."""
    investigation = {"answered": ANSWERED, "failed": FAILED}.get(kind, RUNNING)
    usual = IncidentNews(
        kind=kind,
        key=f"inc1/inv1/{kind}/ops/0",
        incident_id="inc1",
        title="KubePodCrashLooping: shop/checkout",
        state="closed" if kind == "resolved" else "open",
        opened_at=OPENED_AT,
        updated_at=OPENED_AT + timedelta(minutes=1),
        closed_at=OPENED_AT + timedelta(minutes=9) if kind == "resolved" else None,
        severity="critical",
        cluster="prod-eu",
        labels={"namespace": "shop", "pod": "checkout-5d9"},
        root_cause=ANSWERED.root_cause if kind in _AFTER_THE_ANSWER else None,
        verdict=ANSWERED.verdict if kind in _AFTER_THE_ANSWER else None,
        summary=ANSWERED.summary if kind in _AFTER_THE_ANSWER else None,
        reopened=1 if kind == "reopened" else 0,
        alerts=(
            AlertNews(
                name="KubePodCrashLooping", status="firing", labels={"pod": "checkout-5d9"}, summary="It restarts."
            ),
        ),
        alerts_total=1,
        investigation=investigation,
        link=f"{PAGE}/incidents/inc1",
    )
    return replace(usual, **changes)  # type: ignore[arg-type]  # names and types are those of the fields
