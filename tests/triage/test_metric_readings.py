"""The metrics of the workloads that a workload calls: how many are read, and what an answer says about the others."""

from __future__ import annotations

import pytest

from holmes.triage.metric_readings import SeenMetrics, SeenReading, called_arguments, measured_lines

QUIET = SeenReading(text="a: no series differs from normal\nread: restarts")


def related(called: dict[str, int], *more: str) -> SeenReading:
    """A result of `kubernetes_related` with this number of called workloads in each namespace."""
    lines = [f"  Service {to}/s{n}: Deployment {to}/s{n}" for to, count in called.items() for n in range(count)]
    return SeenReading(text="\n".join(["Deployment shop/web", "calls:", *lines, *more, "events:", "  … and 9 more"]))


@pytest.mark.parametrize(
    ("called", "more", "told"),
    [
        ({"shop": 6, "data": 2}, (), []),
        ({"shop": 8}, (), ["Not checked: metrics of 2 of the 8 workloads that it calls"]),
        ({"shop": 7, "data": 2, "mail": 3}, (), ["Not checked: metrics of 4 of the 12 workloads that it calls"]),
        ({"shop": 2}, ("  … and 5 more",), ["Not checked: metrics of the workloads behind 5 further Services"]),
        (
            {"shop": 7},
            ("  … and 5 more",),
            ["Not checked: metrics of 1 of the 7 workloads that it calls and the workloads behind 5 further Services"],
        ),
    ],
)
def test_the_answer_says_how_many_called_workloads_were_not_read(
    called: dict[str, int], more: tuple[str, ...], told: list[str]
) -> None:
    found = related(called, *more)
    arguments = called_arguments(found)
    read = sum(len(each["pods"].split(", ")) for each in arguments)
    assert read == sum(min(count, 6) for count in [*called.values()][:2])
    seen = SeenMetrics(signals=QUIET, related=found, called=(QUIET,) * len(arguments))
    assert measured_lines(seen) == told


def test_nothing_is_said_before_the_called_workloads_are_read() -> None:
    assert measured_lines(SeenMetrics(signals=QUIET, related=related({"shop": 8}))) == []
