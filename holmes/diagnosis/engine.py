"""Discovers the rules in `holmes.diagnosis.rules` and runs them on a cluster state.

The engine merges identical faults of several pods of one workload into one finding. It reads only the state and sends
no requests.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import shlex
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from holmes.diagnosis import rules
from holmes.diagnosis.facts.fixes import kept_steps
from holmes.diagnosis.rule import Rule
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import text, written
from holmes.values.errors import ConfigError
from holmes.values.expressions import expression
from holmes.values.findings import SEVERITIES, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.diagnosis.rule import Fault
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, sorted by id. Raises `ValueError` if two rules have the same id."""
    found: dict[str, Rule] = {}
    for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if not isinstance(value, Rule):
                continue
            if found.setdefault(value.id, value) is not value:
                message = f"duplicate rule id {value.id!r}"
                raise ValueError(message)
    return tuple(found[rule_id] for rule_id in sorted(found))


def chosen_rules(ids: tuple[str, ...]) -> tuple[Rule, ...]:
    """Return the rules with these ids (case-insensitive), or all rules if `ids` is empty.

    Raises `ConfigError` for an unknown id.
    """
    if not ids:
        return all_rules()
    known = {rule.id.lower(): rule for rule in all_rules()}
    for rule_id in ids:
        if rule_id.lower() not in known:
            message = f"unknown rule {rule_id!r}; `holmes rules list` shows all rules"
            raise ConfigError(message)
    wanted = {rule_id.lower() for rule_id in ids}
    return tuple(rule for rule_id, rule in known.items() if rule_id in wanted)


def findings_of(rule: Rule, state: ClusterState) -> tuple[Finding, ...]:
    """Run one rule and return its findings, merged and sorted by culprit."""
    return merged_findings(rule, rule.check(state), state)


def merged_findings(rule: Rule, faults: Iterable[Fault], state: ClusterState) -> tuple[Finding, ...]:
    merged: dict[tuple[ObjectRef, ObjectRef, str, str], Finding] = {}
    for fault in faults:
        finding = _finding(rule, fault, state)
        place = finding.evidence[0].path if finding.evidence else ""
        key = (finding.culprit, workload_ref(finding.subject, state), finding.title, place)
        earlier = merged.get(key)
        merged[key] = finding if earlier is None else _merged(earlier, finding)
    return tuple(sorted(merged.values(), key=lambda finding: (finding.culprit, finding.title, finding.subject)))


def _finding(rule: Rule, fault: Fault, state: ClusterState) -> Finding:
    return Finding(
        rule_id=rule.id,
        severity=fault.severity or rule.row.severity,
        title=fault.title or rule.row.title,
        subject=fault.subject,
        culprit=fault.culprit or workload_ref(fault.subject, state),
        cause=" ".join(fault.cause.split()),
        evidence=tuple(dict.fromkeys(fault.evidence)),
        next_check=_shell_safe(fault, state),
        role=fault.role,
        because=tuple(dict.fromkeys(fault.because)),
        since=written(fault.since) if fault.since else "",
        fix=kept_steps(fault.fix, state),
    )


_PLAIN_WORD: Final = r"[\w.,:/=@%+-]"
_PLAIN_NAME: Final = expression(rf"{_PLAIN_WORD}*")
_PLAIN_COMMAND: Final = expression(rf"(?:{_PLAIN_WORD}| |'[^'\n]*'|\"'\"| \| grep -)*")
"""A command without characters that a shell interprets, except in quotes and in the pipes that rules write."""


def _shell_safe(fault: Fault, state: ClusterState) -> str:
    """Return the command of a fault with quoted names, or an empty text if it is still not safe to paste.

    The API server accepts only plain names, but a recording and a field of a custom resource can contain any text.
    """
    command = fault.next_check
    refs = (fault.subject, fault.culprit or fault.subject, *fault.because, *(each.object for each in fault.evidence))
    names = {name for ref in refs for name in (ref.name, ref.namespace) if not _PLAIN_NAME.fullmatch(name)}
    if not _PLAIN_COMMAND.fullmatch(command):
        names.update(_odd_names(state))
    for name in sorted(names, key=len, reverse=True):
        command = re.sub(rf"(?<![^\s/=]){re.escape(name)}(?!\S)", lambda match: shlex.quote(match[0]), command)
    return command if _PLAIN_COMMAND.fullmatch(command) else ""


@once_per_state
def _odd_names(state: ClusterState) -> frozenset[str]:
    """Return the names of objects and containers that a shell would interpret."""
    names = set()
    for each in (each for kind in state.kinds for each in state.of(kind)):
        containers = (*each.children("spec", "containers"), *each.children("spec", "initContainers"))
        names |= {each.name, each.namespace, *(text(one, "name") for one in containers)}
    return frozenset(name for name in names if not _PLAIN_NAME.fullmatch(name))


def workload_ref(ref: ObjectRef, state: ClusterState) -> ObjectRef:
    """Return the outermost owner of an object, or the object itself if it has no owner or is not in the state."""
    found = state.find(ref)
    return ref if found is None else state.workload_of(found).ref


def _merged(earlier: Finding, later: Finding) -> Finding:
    """Merge two findings for the same fault.

    The result is the more severe finding. If both are equally severe, it is the finding whose subject sorts first. Its
    start is the earlier of the two start times.
    """
    times: Iterable[str] = [since for since in (earlier.since, later.since) if since]
    first, second = sorted((earlier, later), key=lambda finding: (SEVERITIES.index(finding.severity), finding.subject))
    return replace(
        first,
        because=tuple(dict.fromkeys((*first.because, *second.because))),
        since=min(times, default=""),
        subjects=earlier.subjects + later.subjects,
    )
