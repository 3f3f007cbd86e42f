"""A scan of a large cluster uses no more list calls than one of a small cluster; `benchmarks/scan.py` has its cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.long_form import count
from tests.support.scanning import scan, synthetic_server
from tests.support.synthetic_cluster import CRASHING_SHARE, PODS_PER_WORKLOAD

PODS = count(long=5_000, short=2_000)


@pytest.mark.slow
def test_a_large_cluster_is_scanned_with_as_many_lists_and_the_report_says_which_logs_it_did_not_read(
    tmp_path: Path,
) -> None:
    small_folder, large_folder = tmp_path / "small", tmp_path / "large"
    small_folder.mkdir()
    large_folder.mkdir()
    with synthetic_server(small_folder, 50, 500) as kubeconfig:
        small = scan(kubeconfig)
    with synthetic_server(large_folder, PODS, 10 * PODS) as kubeconfig:
        large = scan(kubeconfig)

    assert large.cost.list_calls == small.cost.list_calls
    assert large.cost.logs_read == 20
    assert any("more logs" in each.what for each in large.not_checked)
    assert {incident.culprit.kind for incident in large.incidents} == {"Deployment"}
    assert len(large.incidents) == PODS // PODS_PER_WORKLOAD // CRASHING_SHARE
