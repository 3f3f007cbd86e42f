"""The recorded scenarios, scanned and scored as on the real cluster.

`python -m tests.diagnosis.scenarios.run --record tests/diagnosis/recordings` records them again.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import yaml

from holmes.app.cluster import ClusterChoice, chosen_cluster, scan_cluster
from holmes.diagnosis.scan import ScanRequest
from holmes.settings.load import load_settings
from tests.diagnosis.fix_commands import refused_steps
from tests.diagnosis.scenarios.model import FOLDER, Scenario, load_scenarios
from tests.diagnosis.scenarios.recording import recorded_names, unpack
from tests.diagnosis.scenarios.run import GRACE_SECONDS, describe_score
from tests.diagnosis.scenarios.scoring import Score, judge

KNOWN_MISSES: Final[Mapping[str, str]] = (
    yaml.safe_load((FOLDER / "known_misses.yaml").read_text(encoding="utf-8")) or {}
)
RECORDED: Final = tuple(each for each in load_scenarios() if each.name in recorded_names())


async def _score(scenario: Scenario, folder: Path) -> Score:
    """Judge the scan. Real kubectl tries the steps of all fixes against the recording."""
    places = unpack(scenario.name, folder / "recording")
    settings = load_settings({"HOME": str(folder)})
    namespaces = tuple(places[alias] for alias in scenario.scanned)
    async with chosen_cluster(settings, ClusterChoice(snapshot=folder / "recording")) as chosen:
        report = await scan_cluster(chosen, ScanRequest(namespaces=namespaces, grace_seconds=GRACE_SECONDS))
        kubectl = partial(_kubectl, chosen.investigation.kubeconfig, folder)
        refused = await asyncio.to_thread(lambda: tuple(refused_steps(report, kubectl, "client")))
    return replace(judge(scenario, report, places), refused=refused)


def _kubectl(kubeconfig: Path | None, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    command = ["kubectl", f"--kubeconfig={kubeconfig}", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("scenario", RECORDED, ids=lambda each: each.name)
async def test_a_recorded_scenario_gets_the_right_answer(scenario: Scenario, tmp_path: Path) -> None:
    score = await _score(scenario, tmp_path)

    assert score.right != (scenario.name in KNOWN_MISSES), describe_score(score)
