"""Answers inventory questions and requests for the logs of one object, with one narrow tool call each.

The answer states its scope and any tool errors. For logs, it also states the search text and the number of lines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.triage import tables
from holmes.triage.conversation import source_of
from holmes.triage.details import LOGS_TOOL
from holmes.triage.markdown import code, counted, fenced, plain, resource_path, sentence, table
from holmes.triage.objects import GET_TOOL, WHOLE_CLUSTER, find_scope, locate
from holmes.triage.report import cited_excerpt, excerpt
from holmes.triage.tables import InventoryQuestion, answer, failed_answer, nothing_answer, wanted_names
from holmes.triage.words import KIND_BY_NAME
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holmes.triage.conversation import Lookups, Outcome
    from holmes.triage.intents import Intent
    from holmes.triage.question import Question
    from holmes.values.findings import ObjectRef
    from holmes.values.json_types import JsonValue

_WITH_PODS: Final = frozenset({"Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet"})
_MOST_LINES: Final = 60
_TAIL_LINES: Final = 40
_TAIL_LINES_SEARCHED: Final = 200
COUNT_TOOL: Final = "kubectl_count"
TOP_TOOL: Final = "kubectl_top"
HISTORY_TOOL: Final = "kubectl_rollout_history"
DESCRIBE_TOOL: Final = "kubectl_describe"
EVENTS_TOOL: Final = "kubectl_events"
_MOST_USAGE_ROWS = 15
_MOST_EVENTS = 30
_GROUPS: Final = (
    (re.compile(r"\b(?:per|by|each|on every|every) nodes?\b"), ".spec.nodeName"),
    (re.compile(r"\b(?:per|by|each|in each) (?:phase|status|state)\b"), ".status.phase"),
    (re.compile(r"\b(?:per|by|each|in each|in every) namespaces?\b"), ".metadata.namespace"),
)
_PHASES: Final = {"running": "Running", "pending": "Pending", "failed": "Failed", "succeeded": "Succeeded",
                  "completed": "Succeeded"}  # fmt: skip
_QUANTITY = re.compile(r"(\d{1,12})(m|Ki|Mi|Gi|Ti)?")
_UNITS: Final = {"": 1.0, "m": 0.001, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}


def logs(asked: InventoryQuestion) -> str:
    """Return the newest log lines of the object that the question names."""
    names = wanted_names(asked)
    if not names:
        return answer(asked, "Name the pod or workload, for example `logs of checkout in shop`.")
    located = locate(asked.lookups, names, asked.scope.namespace)
    if located.state == "missing":
        return nothing_answer(asked, "log", asked.place)
    named = names[0]
    ref = next((each for each in located.objects if each.kind in _WITH_PODS), None)
    name, namespace = (ref.name, ref.namespace) if ref is not None else (named.name, asked.scope.namespace)
    question = asked.question
    arguments: dict[str, JsonValue] = {
        "name": name,
        "kind": ref.kind if ref is not None else named.kind if named.kind in _WITH_PODS else "",
        "namespace": namespace if namespace != "*" else "",
        "include": question.searched,
        "since": question.since,
        "previous": True
        if question.says("previous", "before") and question.says("crash", "restart", "previous")
        else None,
        "tail": _TAIL_LINES_SEARCHED if question.searched else _TAIL_LINES,
    }
    outcome = asked.lookups.ask(LOGS_TOOL, **arguments)
    if outcome.failed:
        return failed_answer(asked, f"logs of {name}", outcome.reason)
    return _shown_lines(asked, outcome, ref, name)


def _shown_lines(asked: InventoryQuestion, outcome: Outcome, ref: ObjectRef | None, name: str) -> str:
    """Format the newest log lines of each container, with the container headings."""
    lines = outcome.text.strip("\n").split("\n")
    start = max(1, len(lines) - _MOST_LINES)
    body = list(_without_empty_logs(lines[start:]))
    said = code(str(ref)) if ref is not None else code(name)
    wanted = f" matching {code(asked.question.searched)}" if asked.question.searched else ""
    since = f" from the last {asked.question.since}" if asked.question.since else ""
    if outcome.status != "success" or not body:
        return answer(asked, f"No log lines{wanted}{since} found for {said}.", sentence(plain(lines[0], 400)))
    source = source_of(outcome)
    first = 1 if start == 1 else start + 1  # line 1 is the tool's summary
    marker = source.marker(first, len(lines)) if source.lines else source.marker(1)
    left = f" (last {len(lines) - start} lines)" if start > 1 else ""
    lead = f"Log lines{wanted}{since} of {said}{left}. {sentence(plain(lines[0], 400))}"
    return answer(asked, lead, f"{fenced(shortened(line, 400) for line in body)}\n{marker.strip()}".rstrip())


def _without_empty_logs(lines: list[str]) -> Iterator[str]:
    """Yield `lines` without the headings of containers that have no lines."""
    skipped = -1
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if line.startswith("=== ") and following.startswith("showing 0 of "):
            skipped = index + 1
        elif index != skipped:
            yield line


def answer_inventory(lookups: Lookups, question: Question, intent: Intent) -> str:
    """Run the plan for `intent`. Raises `Waiting`."""
    asked = InventoryQuestion(lookups=lookups, question=question, scope=find_scope(lookups, question))
    return PLANS[intent](asked)


def count(asked: InventoryQuestion) -> str:
    """Count the objects of a kind. If the question asks for it, group the objects or select one phase."""
    question = asked.question
    kind = KIND_BY_NAME[_kind(asked)]
    by = next((path for pattern, path in _GROUPS if pattern.search(question.text)), "")
    if kind.kind == "Pod" and not by and (wanted_names(asked) or _is_a_state(question)):
        return tables.pods(asked)
    phase = next((_PHASES[word] for word in question.words if word in _PHASES), "") if kind.kind == "Pod" else ""
    selector = f"status.phase={phase}" if phase else ""
    if kind.namespaced:
        outcome, place = asked.call(COUNT_TOOL, kind=kind.resource, by=by, field_selector=selector)
    else:
        outcome, place = asked.lookups.ask(COUNT_TOOL, kind=kind.resource, by=by), "in the cluster"
    if outcome.failed or outcome.status != "success":
        return failed_answer(asked, f"number of {kind.resource}", outcome.reason)
    lines = outcome.text.strip().splitlines()
    total = lines[-1].removeprefix("total ").strip()
    source = source_of(outcome)
    marker = source.marker(len(lines)) if source.lines else source.marker(1)
    noun = counted(2, kind.kind).partition(" ")[2] if total != "1" else kind.kind
    lead = (
        f"There {'is' if total == '1' else 'are'} {code(total)} {f'{phase} ' if phase else ''}{noun} {place}.{marker}"
    )
    if not by:
        return answer(asked, lead)
    rows = [tuple(reversed(line.split(None, 1))) for line in lines[1:-1]]
    return answer(asked, lead, table((by, "count"), [(*row, "")[:2] for row in rows]))


def _is_a_state(question: Question) -> bool:
    return question.has("not ready", "not running") or question.says(
        "ready", "unready", "crashing", "crashed", "restarted", "restarting", "evicted", "unhealthy", "failing"
    )


def _kind(asked: InventoryQuestion) -> str:
    """Return the kind that the question asks for.

    This is the first kind in the question. `Namespace` is skipped if the question also contains another kind.
    """
    kinds = asked.question.kinds or ("Pod",)
    return next((kind for kind in kinds if kind != "Namespace" or len(kinds) == 1), kinds[0])


def list_objects(asked: InventoryQuestion) -> str:
    """List the objects of a kind in the format of kubectl."""
    kind = KIND_BY_NAME[_kind(asked)]
    if kind.namespaced:
        outcome, place = asked.call(GET_TOOL, kind=kind.resource)
    else:
        wide = "wide" if kind.kind == "Node" else ""
        outcome, place = asked.lookups.ask(GET_TOOL, kind=kind.resource, output=wide), "in the cluster"
    if outcome.failed:
        return failed_answer(asked, kind.resource, outcome.reason)
    if outcome.status != "success":
        return answer(asked, f"No {kind.resource} found {place}.")
    lines = outcome.text.strip().splitlines()
    number = counted(max(0, len(lines) - 1), kind.kind)
    return answer(asked, f"{number} {place}:", cited_excerpt(outcome, most_lines=60))


def events(asked: InventoryQuestion) -> str:
    """List the events in a namespace or of an object, newest last."""
    warnings: bool | None = True if asked.question.says("warning", "warnings") else None
    found = _object(asked)
    if isinstance(found, str):
        return found
    if found is not None:
        outcome = asked.lookups.ask(
            EVENTS_TOOL, object=resource_path(found), namespace=found.namespace, warnings_only=warnings
        )
        place = f"for {code(str(found))}"
    else:
        outcome, place = asked.call(EVENTS_TOOL, warnings_only=warnings)
    if outcome.failed:
        return failed_answer(asked, "events", outcome.reason)
    lines = outcome.text.strip().splitlines()
    if outcome.status != "success" or len(lines) < 2:
        kind = "warnings" if warnings else "events"
        return answer(asked, f"No {kind} found {place}. By default, Kubernetes keeps events for one hour.")
    shown = lines[1:][-_MOST_EVENTS:]
    left = f" (newest {len(shown)} of {len(lines) - 1})" if len(shown) < len(lines) - 1 else ""
    source = source_of(outcome)
    marker = source.marker(len(lines) - len(shown) + 1, len(lines)) if source.lines else source.marker(1)
    block = excerpt("\n".join((lines[0], *shown)), most_lines=_MOST_EVENTS + 1)
    return answer(asked, f"Events {place}, newest last{left}:", f"{block}\n{marker.strip()}".rstrip())


def usage(asked: InventoryQuestion) -> str:
    """List the pods, containers or nodes with the highest usage according to metrics-server."""
    question = asked.question
    of_nodes = "Node" in question.kinds and "Pod" not in question.kinds
    if of_nodes:
        outcome, place = asked.lookups.ask(TOP_TOOL, what="nodes"), "in the cluster"
    else:
        outcome, place = asked.call(TOP_TOOL, what="containers" if question.has("container") else "pods")
    if outcome.failed or outcome.status != "success":
        return failed_answer(asked, "usage", outcome.reason)
    lines = [line.split() for line in outcome.text.strip().splitlines()]
    header, body = lines[0], [line for line in lines[1:] if len(line) == len(lines[0])]
    wanted = "CPU" if question.says("cpu") and not question.says("memory") else "MEMORY"
    column = next((index for index, title in enumerate(header) if title.startswith(wanted)), len(header) - 1)
    names = {each.name for each in wanted_names(asked)}
    if names:
        body = [
            line for line in body if any(cell == name or cell.startswith(f"{name}-") for cell in line for name in names)
        ]
    body.sort(key=lambda line: -_quantity(line[column]))
    shown = body[:_MOST_USAGE_ROWS]
    lead = f"Usage {place}, highest {'CPU' if wanted == 'CPU' else 'memory'} first ({counted(len(body), 'row')}):"
    source = source_of(outcome)
    marker = source.marker(1, len(lines) if source.lines else None)
    told = (lead, table(header, shown), f"Source:{marker}" if marker else "")
    return answer(asked, *filter(None, told)) if shown else nothing_answer(asked, "usage", place)


def _quantity(text: str) -> float:
    match = _QUANTITY.match(text)
    return int(match[1]) * _UNITS[match[2] or ""] if match else 0.0


def history(asked: InventoryQuestion) -> str:
    """List the revisions of a workload."""
    found = _object(asked)
    if isinstance(found, str):
        return found
    if found is None:
        return answer(
            asked, "Name the Deployment, StatefulSet or DaemonSet, for example `revisions of checkout in shop`."
        )
    outcome = asked.lookups.ask(HISTORY_TOOL, object=resource_path(found), namespace=found.namespace)
    return _shown(asked, found, "revisions", outcome)


def describe(asked: InventoryQuestion) -> str:
    """Return the description of an object, or its YAML if the question asks for YAML."""
    found = _object(asked)
    if isinstance(found, str):
        return found
    if found is None:
        return answer(asked, "Name the object, for example `describe deployment checkout in namespace shop`.")
    kind = KIND_BY_NAME.get(found.kind)
    resource = kind.resource if kind is not None else found.kind.lower()
    if asked.question.says("yaml", "manifest", "definition"):
        outcome = asked.lookups.ask(GET_TOOL, kind=resource, name=found.name, namespace=found.namespace, output="yaml")
    else:
        outcome = asked.lookups.ask(DESCRIBE_TOOL, kind=resource, name=found.name, namespace=found.namespace)
    return _shown(asked, found, "description", outcome)


def _shown(asked: InventoryQuestion, ref: ObjectRef, what: str, outcome: Outcome) -> str:
    if outcome.failed:
        return answer(asked, f"**The {what} of {code(str(ref))} could not be read**: {sentence(plain(outcome.reason))}")
    return answer(asked, f"{code(str(ref))}:", cited_excerpt(outcome, most_lines=120))


def _object(asked: InventoryQuestion) -> ObjectRef | str | None:
    """Return the object that the question names, or None if it does not name an object.

    If the object does not exist, return a "not found" answer.
    """
    names = wanted_names(asked)
    if not names:
        return None
    located = locate(asked.lookups, names, asked.scope.namespace)
    if located.state == "found":
        return located.objects[0]
    if not any(each.certain for each in names) and asked.scope.namespace not in ("", WHOLE_CLUSTER):
        return None
    return nothing_answer(asked, "object", asked.place)


PLANS: Final[Mapping[Intent, Callable[[InventoryQuestion], str]]] = {
    "count": count,
    "image": tables.images,
    "pods": tables.pods,
    "list": list_objects,
    "events": events,
    "logs": logs,
    "replicas": tables.replicas,
    "placement": tables.placement,
    "resources": tables.resources,
    "changes": tables.changes,
    "usage": usage,
    "history": history,
    "describe": describe,
}
