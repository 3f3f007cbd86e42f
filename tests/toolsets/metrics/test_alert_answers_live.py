"""The conditions of alerts in answers: without an LLM, in the first look of a model, and if the source fails."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.command_line import FOR_RECORDINGS, Finished, Home, provider_config
from tests.support.openai_server import OpenAIServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.services.fixtures import RunMonitor
    from tests.services.monitoring import Monitor

pytestmark = pytest.mark.slow

LABELS: Final = {
    "alertname": "RecommendationsErrors", "namespace": "shop", "deployment": "recommendations", "severity": "critical",
}  # fmt: skip
RULES: Final = {
    "groups": [
        {
            "name": "shop",
            "rules": [
                {
                    "alert": "RecommendationsErrors",
                    "expr": "sum by (namespace, deployment) (errors_per_second) > 2",
                    "labels": {"severity": "critical"},
                }
            ],
        }
    ]
}
CONFIG = f"model: builtin/triage\n{FOR_RECORDINGS}\n"


def _samples() -> str:
    end = int(time.time()) // 30 * 30
    place = 'namespace="shop",deployment="recommendations"'
    lines = ["# TYPE errors_per_second gauge"]
    for route, value in (("/for-you", 6), ("/popular", 2)):
        lines += [
            f'errors_per_second{{{place},route="{route}"}} {value if each > end - 1_200 else 0} {each}'
            for each in range(end - 7_200, end + 30, 30)
        ]
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module")
def server(prometheus: RunMonitor) -> Iterator[Monitor]:
    with prometheus({"global": {"evaluation_interval": "1s"}}, rules=RULES, history=_samples()) as monitor:
        yield monitor


def _investigate(folder: Path, config: str, **variables: str) -> Finished:
    file = folder / "alerts.json"
    alert = {"status": "firing", "labels": LABELS, "startsAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    file.write_text(json.dumps({"version": "4", "alerts": [alert]}))
    home = Home.make(folder / "home", config=config, **variables)
    return home.run("investigate", "alertmanager", f"--alertmanager-file={file}", "--demo")


def test_an_answer_without_an_llm_tells_the_condition_with_citations(server: Monitor, tmp_path: Path) -> None:
    done = _investigate(tmp_path, CONFIG, PROMETHEUS_URL=server.url)
    assert done.exit_code == 0, done.stderr
    (condition,) = [line for line in done.stdout.splitlines() if "RecommendationsErrors: the value" in line]
    assert "the value is 8, and fires when > 2 (4 times the threshold); the condition is met since 20" in condition
    (parts,) = [line for line in done.stdout.splitlines() if "Contributions: " in line]
    assert '{route="/for-you"} 6 (75 %); {route="/popular"} 2 (25 %)' in parts
    assert "Read alert RecommendationsErrors" in done.stderr
    body = done.stdout.split("\n\n", 1)[1].rsplit("\n\n", 1)[0]
    assert len(body.splitlines()) <= 20


def test_a_model_sees_the_condition_before_its_first_reply(server: Monitor, tmp_path: Path) -> None:
    with OpenAIServer([Reply(text="**Cause not found**: I only looked.")] * 3) as provider:
        variables = {"PROMETHEUS_URL": server.url, "HOLMES_FIRST_LOOK": "true"}
        done = _investigate(tmp_path, provider_config(provider.base_url, FOR_RECORDINGS), **variables)
        first = json.dumps(provider.requests[0].body["messages"])
    assert done.exit_code == 0, done.stderr
    assert "called read_alert" in first
    assert "the value is 8, and fires when > 2 (4 times the threshold)" in first


def test_a_source_without_the_rule_is_left_out_and_one_that_fails_is_told(server: Monitor, tmp_path: Path) -> None:
    other = dict(LABELS, alertname="SomethingElse")
    alert = {"status": "firing", "labels": other}
    file = tmp_path / "other.json"
    file.write_text(json.dumps({"version": "4", "alerts": [alert]}))
    home = Home.make(tmp_path / "home", config=CONFIG, PROMETHEUS_URL=server.url)
    done = home.run("investigate", "alertmanager", f"--alertmanager-file={file}", "--demo")
    assert done.exit_code == 0, done.stderr
    assert "alerting rule" not in done.stdout
