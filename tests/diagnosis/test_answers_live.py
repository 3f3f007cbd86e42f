"""Answers of the built-in rules on the real cluster.

Two seconds after it began, a definite fault is named; during a start, nothing is blamed. `make test-long` also asks the
questions of the hard set; `benchmarks/diagnosis.py --hard` keeps their scores.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.fixtures import Cluster
from tests.diagnosis.scenarios.answers import describe_answer
from tests.diagnosis.scenarios.api import Api
from tests.diagnosis.scenarios.hard_set import answer_all, answer_staged, known_misses, load_hard
from tests.diagnosis.scenarios.model import AT_ONCE, load_scenarios
from tests.diagnosis.scenarios.run import Run
from tests.support.long_form import cases

_TOGETHER = 2
"""As many answers as processors; more would be asked later than two seconds."""


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_seconds_are_enough_for_a_definite_fault_and_a_start_is_no_fault(cluster: Cluster) -> None:
    chosen = cases(load_scenarios(folder=AT_ONCE), every=2)
    with Api(cluster.admin) as api, ThreadPoolExecutor(_TOGETHER) as pool:
        run = Run(cluster=cluster, api=api, patience=3)
        scores = list(pool.map(lambda scenario: answer_staged(run, scenario, settle_seconds=0), chosen))

    assert [describe_answer(each) for each in scores if not each.right] == []


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_hard_questions_are_answered_on_a_live_cluster(cluster: Cluster) -> None:
    with Api(cluster.admin) as api:
        run = Run(cluster=cluster, api=api, patience=3)
        scores = answer_all(run, load_hard("development"))

    assert [describe_answer(each) for each in scores if not each.right and each.scenario not in known_misses()] == []
