"""Stages one scenario on the cluster and deletes it again.

Namespaces have a suffix that is unique to the run and are deleted without waiting, so scenarios never meet.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from holmes.kubernetes.fields import child, text, texts, written
from holmes.values.json_types import JsonObject
from tests.diagnosis.scenarios.api import Api, ApiRefusalError, Resource
from tests.diagnosis.scenarios.conditions import DidNotShowError, Observer
from tests.diagnosis.scenarios.model import (
    DeleteStep,
    ObjectCondition,
    PatchStep,
    Places,
    ReadyCondition,
    ReadyStep,
    Scenario,
    Step,
    UseStep,
    WaitStep,
    part_manifests,
)

SETTLE_SECONDS: Final = 21
"""The minimum age of a fault when it is scanned; more than the grace period of `run`."""
LABEL: Final = "scenarios.holmes.example/name"


def make_places(scenario: Scenario) -> Places:
    """Names for the namespaces of the scenario, and a word for cluster-wide objects."""
    run = secrets.token_hex(3)
    return {alias: f"{alias}-{run}" for alias in scenario.header.namespaces} | {"run": run}


@contextmanager
def staged(
    scenario: Scenario, api: Api, places: Places, *, patience: float = 1, settle_seconds: float = SETTLE_SECONDS
) -> Iterator[None]:
    """Stages the scenario until it shows its fault; raises DidNotShowError otherwise.

    `patience` multiplies the deadline of the scenario, for a busy machine. A fault is at least `settle_seconds` old.
    """
    deadline = time.monotonic() + scenario.header.deadline_seconds * patience
    stage = Stage(scenario, Observer(api, places, deadline), settle_seconds)
    try:
        try:
            stage.set_up()
        except ApiRefusalError as error:
            raise DidNotShowError(str(error)) from error
        yield
    finally:
        stage.tear_down()


@dataclass(frozen=True)
class Stage:
    """Remembers objects that need cleanup: finalizers and cluster-wide objects."""

    scenario: Scenario
    observer: Observer
    settle_seconds: float
    held: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    @property
    def api(self) -> Api:
        return self.observer.api

    def set_up(self) -> None:

        for alias in self.scenario.header.namespaces:
            self._create_namespace(self.observer.places[alias])
        for step in self.scenario.steps(self.observer.places):
            self._take(step)
        changed = time.monotonic()
        for condition in self.scenario.conditions(self.observer.places):
            self.observer.wait(condition)
        if self.scenario.expectation == "faults":
            time.sleep(max(0, changed + self.settle_seconds - time.monotonic()))

    def tear_down(self) -> None:
        """Deletes everything without waiting for the end."""
        for path in self.held:
            # Most objects are already gone.
            with suppress(ApiRefusalError):
                self.api.patch(path, {"metadata": {"finalizers": None}}, "merge")
        for path in reversed(self.outside):
            self.api.delete(path)
        for alias in self.scenario.header.namespaces:
            self.api.delete(f"/api/v1/namespaces/{self.observer.places[alias]}")

    def _create_namespace(self, name: str) -> None:
        metadata: JsonObject = {"name": name, "labels": {LABEL: self.scenario.name}}
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, "")
        alias = next(alias for alias, place in self.observer.places.items() if place == name)
        # Bare pods are refused until the namespace has its ServiceAccount.
        self.observer.wait(ObjectCondition(kind="ServiceAccount", name="default", namespace=alias))

    def _take(self, step: Step | JsonObject) -> None:
        match step:
            case UseStep():
                for manifest in (each for part in step.parts for each in part_manifests(part, self.observer.places)):
                    self._apply(manifest, self.observer.place(step.namespace))
            case WaitStep():
                for condition in step.until:
                    self.observer.wait(condition)
            case ReadyStep():
                self.observer.wait(ReadyCondition(ready=step.names, namespace=step.namespace))
            case PatchStep():
                self._patch(step)
            case DeleteStep():
                resource = self.api.resource(step.kind)
                self.api.delete(resource.path(self.observer.place(step.namespace), step.name))
            case _:
                self._apply(step, self.observer.place(None))

    def _apply(self, manifest: JsonObject, namespace: str) -> None:
        kind, name = text(manifest, "kind"), text(manifest, "metadata", "name")
        resource = self._known(kind, text(manifest, "apiVersion"))
        path = resource.path(text(manifest, "metadata", "namespace") or namespace, name)
        if texts(manifest, "metadata", "finalizers"):
            self.held.append(path)
        if kind == "Namespace":
            # An apply would remove the label of the run.
            self.api.patch(path, {"metadata": {"labels": child(manifest, "metadata", "labels")}}, "merge")
            return
        self.api.apply(self._told_now(manifest, namespace) if kind == "Event" else manifest, namespace)
        if not resource.namespaced:
            self.outside.append(path)
            # Allows `remove_leftovers` to find it when the run is killed.
            self.api.patch(path, {"metadata": {"labels": {LABEL: self.scenario.name}}}, "merge")

    def _told_now(self, event: JsonObject, namespace: str) -> JsonObject:
        """Return the event as its source would write it: about the living object, and of this moment."""
        involved, now = child(event, "involvedObject"), written(time.time())
        about = self.api.uid(text(involved, "kind"), namespace, text(involved, "name"))
        object_: JsonObject = {**involved, "namespace": namespace, "uid": about}
        return {**event, "involvedObject": object_, "firstTimestamp": now, "lastTimestamp": now, "count": 1}

    def _known(self, kind: str, api_version: str) -> Resource:
        # A new CustomResourceDefinition needs a moment.
        while True:
            try:
                return self.api.resource(kind, api_version)
            except KeyError:
                if time.monotonic() > self.observer.deadline:
                    raise DidNotShowError(f"the cluster knows no {kind!r} of {api_version!r}") from None
                time.sleep(0.5)

    def _patch(self, step: PatchStep) -> None:
        path = self._known(step.kind, step.api_version).path(self.observer.place(step.namespace), step.name)
        if "finalizers" in str(step.change):
            self.held.append(path)
        self.api.patch(f"{path}/{step.subresource}" if step.subresource else path, step.change, step.how)
