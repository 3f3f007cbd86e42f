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
                parts=Parts(query="rate(errors{}[5m])", adds=True),
            ),
        ),
        (
            "max without (pod) (lag) > 1000",
            Condition(
                measured="max without (pod)(lag{})",
                comparison=">",
                threshold=1000,
                parts=Parts(query="lag{}", adds=False),
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


@pytest.mark.parametrize(
    "query",
    [
        "rate(up[5m",
        "sum(increase(errors[5m])) > 5 or absent(errors)",
        'rate(errors{code=~"5\\d\\d"}[5m]) > 1',
        "up{job='it\"s'} == 0",
        "WITH (a = 1) a",
    ],
)
def test_what_cannot_be_taken_apart_is_measured_as_a_whole(query: str) -> None:
    condition = condition_of(query)
    assert (condition.comparison, condition.threshold, condition.parts, condition.is_absence) == ("", None, None, False)
    assert condition.measured.replace("{}", "") == query


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("1 - sum(ok) / sum(all) > 0.05", None),
        ("100 - avg by (instance) (idle) * 100 > 80", None),
        ("5 / sum(x) > 1", None),
        ("100 * sum(x) > 1", Parts(query="x{}", adds=True)),
        ("count(x > 5) > 1", Parts(query="x{} > 5", adds=False)),
    ],
)
def test_what_counts_most_is_only_told_if_more_of_it_means_more(query: str, parts: Parts | None) -> None:
    assert condition_of(query).parts == parts


def test_a_range_below_absence_is_measured_at_one_time() -> None:
    assert condition_of("absent_over_time(up[10m])") == Condition(measured="up{}", is_absence=True)
