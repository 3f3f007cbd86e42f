"""What an investigation may cost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holmes.app.investigators import cost_limit
from holmes.investigations.records.values import InvestigationId, InvestigationRecord


@pytest.mark.parametrize(
    ("asked", "route", "general", "limit"),
    [
        (5.0, "", 1.0, 1.0),  # a client cannot take more than the server allows
        (0.5, "", 1.0, 0.5),
        (0.0, "", 1.0, 0.0),
        (5.0, "", None, 5.0),
        (None, "", 1.0, 1.0),
        (None, "payments", 1.0, 1.0),
        (5.0, "payments", 1.0, 5.0),  # the configuration can
        (None, "", None, None),
    ],
)
def test_clients_ask_for_less_and_routes_of_the_configuration_for_more(
    asked: float | None, route: str, general: float | None, limit: float | None
) -> None:
    record = InvestigationRecord(
        id=InvestigationId("1"),
        state="queued",
        question="why?",
        title="why?",
        source="api",
        created_at=datetime.now(UTC),
        route=route,
        max_cost=asked,
    )
    assert cost_limit(record, general) == limit
