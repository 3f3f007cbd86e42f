"""Faults that only metrics show, and their healthy twins, answered without a model on the real cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pytest
from pydantic import BaseModel, ConfigDict, model_validator

from holmes.yaml_documents import read_document
from tests.cluster.fixtures import Cluster, create_namespace, wait_until
from tests.support.command_line import Home
from tests.support.long_form import cases
from tests.support.metric_history import History

if TYPE_CHECKING:
    from tests.services.fixtures import RunMonitor

pytestmark = pytest.mark.cluster

FOLDER: Final = Path(__file__).parent / "metric_faults"
TROUBLE: Final = re.compile(r"^- Metrics .*\b(?:now|raised|rising|happened): ", re.MULTILINE)

_NAMES: Final = ("pod", "node", "nodename")


class Keys(BaseModel):
    """Keys that must be known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SeriesKeys(Keys):
    """One series, or with `each` one for each of these workloads. See the README of the cases."""

    counter: str = ""
    gauge: str = ""
    labels: dict[str, str] = {}
    each: tuple[str, ...] = ()
    before: float = 0
    after: float = 0
    value: float | None = None
    minutes: float = 0
    shape: Literal["step", "ramp"] = "step"
    exact: bool = False

    @model_validator(mode="after")
    def _has_one_type(self) -> SeriesKeys:
        assert bool(self.counter) != bool(self.gauge)
        return self

    def at(self, left: float) -> float:
        """Return the value or rate, `left` seconds before the end."""
        if self.value is not None:
            return self.value
        length = self.minutes * 60
        if left > length:
            return self.before
        done = 1 if self.shape == "step" else 1 - left / length
        return self.before + (self.after - self.before) * done

    def places(self) -> Iterator[dict[str, str]]:
        """Yield the labels of each series."""
        if not self.each:
            yield self.labels
        for workload in self.each:
            yield {"pod": workload, "container": workload, **self.labels}


class Case(Keys):
    """A fault, or without `right` a healthy twin."""

    name: str
    question: str
    workload: str
    series: tuple[SeriesKeys, ...]
    right: tuple[str, ...] = ()


class CaseFile(Keys):
    """A file of cases."""

    cases: tuple[Case, ...]


class HealthyFile(Keys):
    """The series of the healthy shop."""

    series: tuple[SeriesKeys, ...]


def _cases(name: str) -> tuple[Case, ...]:
    return CaseFile.model_validate(read_document(FOLDER / name).content).cases


SEEN: Final = _cases("seen.yaml")
UNSEEN: Final = _cases("unseen.yaml")
HEALTHY: Final = HealthyFile.model_validate(read_document(FOLDER / "healthy.yaml").content).series


@pytest.fixture(scope="module")
def shop(cluster: Cluster) -> Iterator[str]:
    """Yield the namespace of the shop, in which all pods are ready."""
    namespace = create_namespace(cluster, "metrics")
    cluster.run("apply", f"--namespace={namespace}", f"--filename={FOLDER / 'shop.yaml'}")
    wait_until(
        "the shop is ready",
        lambda: cluster.run("get", "pods", f"--namespace={namespace}", "--no-headers"),
        lambda pods: len(re.findall(r" 1/1 +Running ", pods)) == 6,
        timeout_seconds=120,
    )
    yield namespace
    cluster.run("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def pods(cluster: Cluster, shop: str) -> Mapping[str, str]:
    """Return the name of the pod of each workload, and of the `node`."""
    listed = json.loads(cluster.run("get", "pods", f"--namespace={shop}", "--output=json"))["items"]
    names = {each["metadata"]["labels"]["app"]: each["metadata"]["name"] for each in listed}
    return {**names, "node": listed[0]["spec"]["nodeName"]}


def _history(case: Case, namespace: str, names: Mapping[str, str]) -> str:
    series = {
        (each.counter or each.gauge, *sorted(labels.items())): (each, labels)
        for each in (*HEALTHY, *case.series)
        for labels in each.places()
    }
    history = History(hours=4)
    for each, labels in series.values():
        placed = {"namespace": namespace, **labels}
        renamed = {key: names.get(value, value) if key in _NAMES else value for key, value in placed.items()}
        text = ",".join(f'{key}="{value}"' for key, value in renamed.items() if value)
        if each.counter:
            history.counter(each.counter, text, each.at)
        else:
            history.gauge(each.gauge, text, each.at, exact=each.exact)
    return history.text()


def _answer(case: Case, shop: str, pods: Mapping[str, str], cluster: Cluster, run: RunMonitor, folder: Path) -> str:
    with ExitStack() as stack:
        monitor = stack.enter_context(run({}, history=_history(case, shop, pods)))
        variables = {"PROMETHEUS_URL": monitor.url, "KUBECONFIG": str(cluster.kubeconfig("viewer"))}
        home = Home.make(folder / "home", config="model: builtin/triage\n", **variables)
        question = f"{case.question.rstrip('?. ')} in namespace {shop}?"
        done = home.run("ask", "-n", question)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(240)
@pytest.mark.parametrize("case", [*cases(SEEN, 10), *cases(UNSEEN, 10)], ids=lambda case: case.name.replace(" ", "-"))
def test_a_fault_has_the_right_signal_and_a_twin_has_none(
    case: Case, shop: str, pods: Mapping[str, str], cluster: Cluster, prometheus: RunMonitor, tmp_path: Path
) -> None:
    answer = _answer(case, shop, pods, cluster, prometheus, tmp_path)
    lines = [line for line in answer.splitlines() if line.startswith(("- Metrics ", "- Earliest change: "))]
    assert not answer.startswith("**Root cause**"), answer
    if case.right:
        assert answer.startswith("**Cause not found**"), answer
        assert any(each.lower() in line.lower() for each in case.right for line in lines), answer
    else:
        # Who complains of a fault is told that no cause was found, not that all is well.
        assert answer.startswith(("**Healthy**", "**Cause not found**")), answer
        assert TROUBLE.search(answer) is None, answer
