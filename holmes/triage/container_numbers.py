"""Answers how many containers there are: in a state, of pods with conditions, on nodes. Sidecars count, too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.diagnosis.facts.pods import containers_of
from holmes.triage.facts import fact, not_answered, place_of, table_of
from holmes.triage.filters import lacking_containers
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted
from holmes.triage.pods_asked import filtered, pods_named, runs_nothing, take_exclusions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holmes.diagnosis.facts.pods import Container
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook


def containers_in_state(asked: Asked) -> FirstLook:
    """Answer how many containers are in a state."""
    tests: Mapping[str, Callable[[Container], bool]] = {
        "crashing": lambda one: one.waiting.get("reason") == "CrashLoopBackOff",
        "running": lambda one: one.running,
        "ready": lambda one: one.ready,
        "not_ready": lambda one: not one.ready,
        "restarting": lambda one: one.restarts > 0,
        "never_restarted": lambda one: one.restarts == 0,
        "image_pull": lambda one: "ImagePull" in str(one.waiting.get("reason", "")),
        "oom": lambda one: "OOMKilled" in (one.last_terminated.get("reason"), one.terminated.get("reason")),
    }
    states = asked.question.states
    gaps = unread(asked.state, ("Pod",), asked.subject.namespaces)
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    asked.ledger.take("state", *tests)
    asked.ledger.take("kind", "Pod", "Namespace", *(each.kind for each in asked.subject.objects))
    if states:
        asked.ledger.take("concept", "trouble", "health")
    unknown = runs_nothing(asked, "The number of containers")
    if unknown is not None:
        return unknown
    without = lacking_containers(asked)
    take_exclusions(asked)
    keyed = replace(asked, question=replace(asked.question, found=()))
    pods, of_pods = filtered(keyed, pods_named(asked), ("Pod",))
    left = asked.ledger.left()
    if left:
        return not_answered(asked, left, to="containers")
    found = [
        one
        for pod in pods
        for one in containers_of(pod)
        if (one.kind == "main" or one.sidecar)
        and all(tests[state](one) for state in states)
        and all(h(one.spec) for _, h in without)
    ]
    conditions = [*states, *(told for told, _ in without)]
    told = f" ({'; '.join(conditions)})".replace("_", " ") if conditions else ""
    rows = [(str(one.pod.ref), one.name, str(one.restarts)) for one in found]
    return fact(
        asked,
        f"{counted(len(found), 'container')} in {counted(len({one.pod.ref for one in found}), 'pod')} "
        f"{place_of(asked)}{of_pods}{told}.",
        table_of(("pod", "container", "restarts"), rows),
    )
