"""Expressions of alerting rules as real rule sets write them."""

from __future__ import annotations

import pytest

from holmes.observability.metrics.conditions import Condition, Parts, condition_of


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("up == 0", Condition(measured="up{}", comparison="==", threshold=0)),
        ("(up) != 1", Condition(measured="up{}", comparison="!=", threshold=1)),
        ("80 / 100 < disk", Condition(measured="disk{}", comparison=">", threshold=0.8)),
        ("temperature > -(2 + 1)", Condition(measured="temperature{}", comparison=">", threshold=-3)),
        ("length > limit", Condition(measured="length{}", comparison=">", limit="limit{}")),
        ('absent(up{job="a"} == 1)', Condition(measured='up{job="a"} == 1', is_absence=True)),
        ("absent(up) == 1", Condition(measured="up{}", is_absence=True)),
        ("failed_jobs", Condition(measured="failed_jobs{}")),
        (
            "failed > 0 and on (job) up == 1 unless on (job) paused",
            Condition(measured="failed{}", comparison=">", threshold=0),
        ),
        (
            "100 * sum by (app) (rate(errors[5m])) / sum by (app) (rate(requests[5m])) > 5",
            Condition(
                measured="100 * sum by (app)(rate(errors{}[5m])) / sum by (app)(rate(requests{}[5m]))",
                comparison=">",
                threshold=5,
                parts=Parts(query="rate(errors{}[5m])", by=("app",), adds=True),
            ),
        ),
        (
            "max without (pod) (lag) > 1000",
            Condition(
                measured="max without (pod)(lag{})",
                comparison=">",
                threshold=1000,
                parts=Parts(query="lag{}", by=(), adds=False),
            ),
        ),
        (
            "histogram_quantile(0.99, sum by (le) (rate(seconds_bucket[5m]))) > 1",
            Condition(
                measured="histogram_quantile(0.99, sum by (le)(rate(seconds_bucket{}[5m])))",
                comparison=">",
                threshold=1,
            ),
        ),
    ],
)
def test_what_a_rule_measures(query: str, condition: Condition) -> None:
    assert condition_of(query) == condition


def test_text_that_is_not_promql_has_no_condition() -> None:
    assert condition_of("rate(up[5m") is None
