"""Some scenarios of every kind on the real cluster; `benchmarks/diagnosis.py` runs all of them."""

from __future__ import annotations

import pytest

from tests.cluster.fixtures import Cluster
from tests.diagnosis.scenarios.api import Api
from tests.diagnosis.scenarios.model import load_scenarios
from tests.diagnosis.scenarios.run import Run, describe_score, run_scenarios
from tests.support.long_form import cases

CHOSEN = (
    "chain-three-hops-secret",
    "crash-required-variable-removed",
    "image-tag-typo",
    "quiet-beside-loud-neighbour",
    "service-selector-typo",
    "storage-class-missing",
    "two-image-and-node-selector",
    "crash-was-fixed",
    "noisy-log",
    "rolling-update-in-progress",
)


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_live_cluster_gets_the_right_answers(cluster: Cluster) -> None:
    with Api(cluster.admin) as api:
        scores = run_scenarios(Run(cluster=cluster, api=api, patience=3), load_scenarios(*cases(CHOSEN, every=2)))

    assert [describe_score(each) for each in scores if not each.right] == []
