"""Which route takes an alert."""

from __future__ import annotations

from holmes.investigations.alerts.routes import NO_ROUTE, LabelPattern, Route, Routes
from tests.support.deadlines import ends_before


def test_the_first_route_whose_expressions_match_whole_values_decides() -> None:
    routes = Routes(
        (
            Route(name="shop", match=(LabelPattern("namespace", "shop|cart"), LabelPattern("severity", "critical"))),
            Route(name="rest", match=(LabelPattern("severity", ".+"),)),
        )
    )
    assert routes.of({"namespace": "shop", "severity": "critical"}).name == "shop"
    assert routes.of({"namespace": "shopping", "severity": "critical"}).name == "rest"
    assert routes.of({"namespace": "shop"}) is NO_ROUTE
    assert routes.named("rest").name == "rest"
    assert routes.named("gone") is NO_ROUTE


def test_a_label_that_is_missing_is_empty() -> None:
    assert Route(match=(LabelPattern("team", ""),)).takes({})
    assert not Route(match=(LabelPattern("team", ".+"),)).takes({})


def test_an_expression_that_would_take_for_ever_is_no_match() -> None:
    slow = LabelPattern("name", r"(?:a|aa|a?a)+[bc]")
    with ends_before(60):
        assert not any(slow.matches({"name": "a" * 900 + "!"}) for _ in range(50))
