"""Which workload a selector was meant for that selects nothing. Called by rules about Services and policies."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.label_index import labels_of
from holmes.diagnosis.facts.rollouts import replica_sets_newest_first
from holmes.kubernetes.fields import text_map
from holmes.kubernetes.selectors import matches_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_ALIKE: Final = 0.7
_ROLE_WORDS: Final = ("role", "leader", "active", "master", "primary", "replica", "writer", "standby", "slot")
_MADE_BY_CONTROLLERS: Final = frozenset({"pod-template-hash", "controller-revision-hash", "pod-template-generation"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A selector and the labels of the workload that it comes closest to. `keys` are those that differ."""

    template: PodTemplate
    keys: tuple[str, ...]
    score: float

    @property
    def workload(self) -> ClusterObject:
        """The workload."""
        return self.template.workload

    def differences(self, selector: Mapping[str, str]) -> str:
        """What differs, in words."""
        labels = self.template.labels
        return ", ".join(
            f"{key}: the selector wants {selector[key]!r}, the pods have "
            + (repr(labels[key]) if key in labels else f"no label {key!r}{_other_key(selector[key], labels)}")
            for key in self.keys
        )


def _other_key(value: str, labels: Mapping[str, str]) -> str:
    key = next((key for key, found in labels.items() if found == value), None)
    return f" (but {key}={value})" if key else ""


def nearest_workload(state: ClusterState, name: str, namespace: str, selector: Mapping[str, str]) -> Mismatch | None:
    """The workload whose pods come closest to the selector of `name`, None when none looks like it."""
    alike = _Likeness()
    candidates = [
        Mismatch(
            template=template,
            keys=tuple(sorted(key for key, value in selector.items() if template.labels.get(key) != value)),
            score=_score(name, selector, template, alike),
        )
        for template in labels_of(state).templates.of(namespace)
        if template.workload.kind not in {"Job", "CronJob"} and template.labels
    ]
    likely = [each for each in candidates if each.score >= 1]
    return max(likely, key=lambda each: (each.score, -len(each.keys), each.workload.name), default=None)


def _score(name: str, selector: Mapping[str, str], template: PodTemplate, alike: _Likeness) -> float:
    """Equal labels count one, similar ones nearly as much, the same name as much as a label."""
    score = 0.0
    for key, value in selector.items():
        found = template.labels.get(key)
        if found == value:
            score += 1.0
        elif found is not None:
            score += alike(value, found)
        elif value in template.labels.values():
            score += 0.9
    workload = template.workload.name
    return score + (1.0 if workload == name else alike(name, workload))


class _Likeness:
    """How much names look like each other, below 1; quick for one name against many."""

    def __init__(self) -> None:
        self._matchers: dict[str, difflib.SequenceMatcher[str]] = {}

    def __call__(self, name: str, other: str) -> float:
        """The likeness, 0 when they do not look alike."""
        matcher = self._matchers.get(name)
        if matcher is None:
            matcher = self._matchers[name] = difflib.SequenceMatcher(None, b=name.lower())
        matcher.set_seq1(other.lower())
        if matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE:
            return 0.0
        ratio = matcher.ratio()
        return ratio * 0.9 if ratio >= _ALIKE else 0.0


def lost_by_rollout(state: ClusterState, workload: ClusterObject, selector: Mapping[str, str]) -> ClusterObject | None:
    """An older ReplicaSet of the workload whose pods the selector still matched, None when there is none."""
    if workload.kind != "Deployment":
        return None
    older = replica_sets_newest_first(state, workload)[1:]
    return next(
        (
            each
            for each in older
            if matches_map(selector, text_map(each.body, "spec", "template", "metadata", "labels"))
        ),
        None,
    )


def is_dynamic(state: ClusterState, mismatch: Mismatch, selector: Mapping[str, str]) -> bool:
    """Whether the labels that differ are set on running pods on purpose: leaders, roles, revisions."""
    if any(key in _MADE_BY_CONTROLLERS or "hash" in key for key in mismatch.keys):
        return True
    pods = state.pods_of(mismatch.workload)
    for key in mismatch.keys:
        words = key.rpartition("/")[2].lower()
        by_name = any(word in words for word in _ROLE_WORDS) and key not in mismatch.template.labels
        on_pods = key not in mismatch.template.labels and any(key in pod.labels for pod in pods)
        if not (by_name or on_pods):
            return False
    return bool(mismatch.keys) and bool(selector)
