"""Asks the first look about alerts on a cluster on which scenarios are staged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import yaml

from holmes.kubernetes.fields import children, text
from holmes.toolsets.kubernetes_diagnosis.toolset import FIRST_LOOK, KubernetesDiagnosisToolset
from holmes.values.environment import Environment
from holmes.values.first_look import FirstLook, look_from_yaml
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.diagnosis.scenarios.answers import blamed_object
from tests.diagnosis.scenarios.api import Api
from tests.diagnosis.scenarios.model import Places, Scenario, load_scenarios
from tests.diagnosis.scenarios.stage import make_places, staged

_FILE: Final = Path(__file__).with_name("alerts.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedAlert:
    """An alert about an object of a staged scenario. `fault` is false if this object does not suffer."""

    scenario: Scenario
    places: Places
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    fault: bool = True

    def judged(self, look: FirstLook) -> str:
        """Return what is wrong with the answer, or an empty string."""
        blamed = blamed_object(look.culprit) if look.verdict == "cause_found" else None
        expected = [target for each in self.scenario.header.expected for target in each.culprit]
        right = blamed is not None and any(target.matches(blamed, self.places) for target in expected)
        if right if self.fault else blamed is None:
            return ""
        return f"{self.scenario.name}: {dict(self.labels)}: {look.verdict} {look.culprit}: {look.summary}"


@contextmanager
def staged_alerts(api: Api, *, patience: float) -> Iterator[tuple[StagedAlert, ...]]:
    """Stages the scenarios of all alerts together, and yields the alerts with the names of this run."""
    raw: Mapping[str, Sequence[Mapping[str, Any]]] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    scenarios = {each.name: each for each in load_scenarios() if each.name in raw}
    assert raw.keys() == scenarios.keys()
    places = {name: make_places(each) for name, each in scenarios.items()}
    with ExitStack() as stack, ThreadPoolExecutor(len(scenarios)) as pool:
        stages = [staged(each, api, places[name], patience=patience) for name, each in scenarios.items()]
        list(pool.map(stack.enter_context, stages))
        yield tuple(
            StagedAlert(
                scenario=scenarios[name],
                places=places[name],
                labels=_labels(each["labels"], places[name], api),
                annotations=each.get("annotations", {}),
                fault=each.get("fault", True),
            )
            for name, alerts in raw.items()
            for each in alerts
        )


def _labels(labels: Mapping[str, str], places: Places, api: Api) -> Mapping[str, str]:
    namespace = next(iter(places.values()))
    pods = sorted(api.objects("Pod", namespace), key=_is_ready)
    names = [text(each, "metadata", "name") for each in pods]
    wanted = labels.get("pod", "")
    return {
        **labels,
        "namespace": namespace,
        **({"pod": next(name for name in names if fnmatchcase(name, wanted))} if wanted else {}),
    }


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = children(pod, "status", "conditions")
    return any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)


async def look_at(kubeconfig: Path, alert: Mapping[str, str]) -> FirstLook:
    """Take the first look at one alert, with its labels and annotations in one mapping."""
    toolset = KubernetesDiagnosisToolset(Environment.of({"KUBECONFIG": str(kubeconfig)}))
    arguments = {"alerts": json.dumps([dict(alert)])}
    result = await toolset.call(ToolInvocation(call_id=ToolCallId("look"), tool=FIRST_LOOK, arguments=arguments))
    assert isinstance(result.data, str), result.error
    return look_from_yaml(result.data)
