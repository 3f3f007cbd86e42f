"""Writes tables for inventory answers from the tab-separated lines of one narrow jq call.

Shows images, replicas, resources, placement and states exactly as the call returned them. If the user may not list
objects in the whole cluster, Holmes reads the default namespace, and the answer states this.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.triage.conversation import Source, source_of
from holmes.triage.markdown import code, counted, one_line, plain, resource_path, sentence, table
from holmes.triage.matching import is_pod_of
from holmes.triage.objects import RELATED_TOOL, WHOLE_CLUSTER, locate
from holmes.triage.report import NO_LLM, excerpt, missing_namespace_text, missing_object_text, paragraphs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.conversation import Lookups, Outcome
    from holmes.triage.objects import Scope
    from holmes.triage.question import Named, Question
    from holmes.values.json_types import JsonValue

JQ_TOOL: Final = "kubectl_jq"
_MOST_ROWS_SHOWN: Final = 40
_MOST_NAMES: Final = 4
_TEMPLATES: Final = "deployments,statefulsets,daemonsets,cronjobs"
_TEMPLATE: Final = "(.spec.jobTemplate.spec.template.spec // .spec.template.spec)"
_WHO: Final = '(.kind + " " + .metadata.namespace + "/" + .metadata.name)'
_CONTAINERS: Final = "(({spec}.initContainers // []) + ({spec}.containers // []))[]"
_POD: Final = (
    "[.status.containerStatuses[]?] as $c | ($c | map(select(.ready)) | length) as $ready "
    "| ([$c[].restartCount] | add // 0) as $restarts "
    '| ([$c[] | .state.waiting.reason // .state.terminated.reason // empty] | unique | join(",")) as $now '
    '| ([$c[] | .lastState.terminated | select(.) | (.reason // "") + " " + (.exitCode | tostring)] | unique '
    '| join(",")) as $before '
)
_NOT_READY: Final = '.status.phase != "Succeeded" and ($ready < (.spec.containers | length))'


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryQuestion:
    """An inventory question with its scope and the tool results of the conversation."""

    lookups: Lookups
    question: Question
    scope: Scope

    @property
    def namespace(self) -> str:
        """The namespace of the question, the default namespace of the user, or the whole cluster."""
        return self.scope.namespace or WHOLE_CLUSTER

    def call(self, tool: str, **arguments: JsonValue) -> tuple[Outcome, str]:
        """Return the result of `tool`, and the scope of this result.

        Falls back to the default namespace if the user may not read the whole cluster.
        """
        outcome = self.lookups.ask(tool, namespace=self.namespace, **arguments)
        if self.namespace == WHOLE_CLUSTER and outcome.is_forbidden:
            narrower = self.lookups.ask(tool, **arguments)
            if not narrower.failed:
                return narrower, "in the default namespace (reading the whole cluster is forbidden)"
        return outcome, self.place

    @property
    def place(self) -> str:
        """The scope as a phrase."""
        return "in the whole cluster" if self.namespace == WHOLE_CLUSTER else f"in namespace {code(self.namespace)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of a table. `failure` is the error if the objects could not be read."""

    cells: tuple[tuple[str, ...], ...] = ()
    place: str = ""
    failure: str = ""
    source: Source = field(default_factory=Source)

    @property
    def marker(self) -> str:
        """The citation of the rows that the answer shows."""
        last = min(len(self.cells), _MOST_ROWS_SHOWN)
        return self.source.marker(1, last) if self.source.lines else self.source.marker(1)


def read_rows(asked: InventoryQuestion, kinds: str, expression: str) -> Rows:
    """Read the rows that a jq expression returns for objects of `kinds`. Raises `Waiting`."""
    outcome, place = asked.call(JQ_TOOL, kind=kinds, expression=expression)
    if outcome.failed:
        return Rows(failure=outcome.reason, place=place)
    if outcome.status != "success":
        return Rows(place=place)
    cells = tuple(tuple(line.split("\t")) for line in outcome.text.splitlines() if "\t" in line)
    return Rows(cells=_closest(cells, wanted_names(asked)), place=place, source=source_of(outcome))


def _closest(cells: tuple[tuple[str, ...], ...], names: Sequence[Named]) -> tuple[tuple[str, ...], ...]:
    """Return only the rows of objects with exactly these names and of their pods.

    `cart` does not match `cart-worker`. If no row matches, all rows are returned.
    """
    wanted = {each.name for each in names}
    exact = tuple(row for row in cells if _is_of(row[0].rpartition("/")[2], wanted))
    return exact or cells


def _is_of(name: str, wanted: set[str]) -> bool:
    return any(name == each or is_pod_of(name, each) or is_pod_of(each, name) for each in wanted)


def name_filter(names: Sequence[Named]) -> str:
    """Return a jq condition for objects with these names or derived names, or `true` if `names` is empty.

    Names are written as JSON strings, so a question cannot inject jq code.
    """
    conditions = []
    for named in names[:_MOST_NAMES]:
        written = json.dumps(named.name)
        conditions.append(
            f'(. == {written} or startswith({written} + "-") or (. as $n | {written} | startswith($n + "-")))'
        )
        if named.prefix:
            conditions.append(f"startswith({written})")
    return f"(.metadata.name | {' or '.join(conditions)})" if conditions else "true"


def wanted_names(asked: InventoryQuestion) -> tuple[Named, ...]:
    """Return the names in the question that refer to objects.

    These are only the names that are certain, or all names if no name is certain.
    """
    names = [each for each in asked.scope.names if each.kind not in ("Namespace", "Node")]
    return tuple(each for each in names if each.certain) or tuple(names)


def rows_answer(asked: InventoryQuestion, rows: Rows, noun: str, header: Sequence[str], lead: str = "") -> str:
    """Write a table of `rows` with its title, or an answer that explains why the table is empty."""
    if rows.failure:
        return failed_answer(asked, noun, rows.failure)
    if not rows.cells:
        return nothing_answer(asked, noun, rows.place)
    shown = rows.cells[:_MOST_ROWS_SHOWN]
    left = len(rows.cells) - len(shown)
    more = f"\n\n... and {counted(left, 'more row')}." if left else ""
    about = lead or f"{counted(len(rows.cells), noun)} {rows.place}:"
    return answer(asked, about, f"{table(header, shown)}{more}", rows.marker.strip() and f"Source:{rows.marker}")


def failed_answer(asked: InventoryQuestion, what: str, reason: str) -> str:
    """Write the answer for a failed lookup. `reason` is the error message."""
    return answer(asked, f"**The {plain(what)} could not be looked up {asked.place}**: {sentence(plain(reason))}")


def nothing_answer(asked: InventoryQuestion, noun: str, place: str) -> str:
    """Write the answer for an empty result. For a name that does not exist, suggest similar names."""
    names = wanted_names(asked)
    if names:
        located = locate(asked.lookups, names, asked.scope.namespace)
        if located.state != "found":
            return answer(asked, missing_object_text(located, asked.scope))
        said = ", ".join(code(str(ref)) for ref in located.objects[:3])
        return answer(asked, f"No {noun} found for {said} {place}.")
    return answer(asked, f"No {noun} found {place}.")


def answer(asked: InventoryQuestion, *parts: str) -> str:
    """Join the parts of an answer, and add the fixed texts around them."""
    return paragraphs(missing_namespace_text(asked.scope), *parts, NO_LLM)


def images(asked: InventoryQuestion) -> str:
    """List the images of workloads."""
    chosen = f".items[] | select({name_filter(wanted_names(asked))})"
    expression = (
        f"{chosen} | {_WHO} as $who | {_TEMPLATE} as $spec | {_CONTAINERS.replace('{spec}', '$spec')} "
        "| [$who, .name, .image] | @tsv"
    )
    rows = read_rows(asked, _TEMPLATES, expression)
    if not rows.cells and not rows.failure and any(each.kind in ("", "Pod") for each in wanted_names(asked)):
        expression = (
            f"{chosen} | {_WHO} as $who | .spec as $spec | {_CONTAINERS.replace('{spec}', '$spec')} "
            "| [$who, .name, .image] | @tsv"
        )
        rows = read_rows(asked, "pods", expression)
    lead = ""
    if len(rows.cells) == 1:
        who, container, image = (*rows.cells[0], "", "")[:3]
        lead = f"{code(who)} runs {code(image)} (container {code(container)}).{rows.marker}"
        return answer(asked, lead)
    return rows_answer(asked, rows, "container image", ("object", "container", "image"), lead)


def replicas(asked: InventoryQuestion) -> str:
    """List the desired and ready replicas of workloads."""
    expression = (
        f".items[] | select({name_filter(wanted_names(asked))}) | [{_WHO}, "
        "(.spec.replicas // .status.desiredNumberScheduled // 0), "
        "(.status.readyReplicas // .status.numberReady // 0), "
        "(.status.updatedReplicas // .status.updatedNumberScheduled // 0)] | @tsv"
    )
    rows = read_rows(asked, "deployments,statefulsets,daemonsets", expression)
    if len(rows.cells) == 1:
        who, wanted, ready, updated = (*rows.cells[0], "", "", "")[:4]
        return answer(
            asked,
            f"{code(who)} has `{ready}` of `{wanted}` desired replicas ready, `{updated}` up to date.{rows.marker}",
        )
    return rows_answer(asked, rows, "workload", ("object", "desired", "ready", "up to date"))


def resources(asked: InventoryQuestion) -> str:
    """List the requests and limits of containers."""
    expression = (
        f".items[] | select({name_filter(wanted_names(asked))}) | {_WHO} as $who | {_TEMPLATE} as $spec "
        f'| {_CONTAINERS.replace("{spec}", "$spec")} | [$who, .name, (.resources.requests.cpu // "none"), '
        '(.resources.limits.cpu // "none"), (.resources.requests.memory // "none"), '
        '(.resources.limits.memory // "none")] | @tsv'
    )
    rows = read_rows(asked, _TEMPLATES, expression)
    header = ("object", "container", "CPU request", "CPU limit", "memory request", "memory limit")
    return rows_answer(asked, rows, "container", header)


def placement(asked: InventoryQuestion) -> str:
    """List the nodes on which pods run."""
    expression = (
        f".items[] | select({name_filter(wanted_names(asked))}) | {_POD}"
        '| [.metadata.namespace + "/" + .metadata.name, .status.phase, (.spec.nodeName // "not scheduled"), '
        '(.status.podIP // "")] | @tsv'
    )
    rows = read_rows(asked, "pods", expression)
    return rows_answer(asked, rows, "pod", ("pod", "phase", "node", "IP"))


def pods(asked: InventoryQuestion) -> str:
    """List the pods in the state that the question names, most restarts first."""
    state, condition = _state(asked.question)
    named = wanted_names(asked)
    expression = (
        f".items[] | select({name_filter(named)}) | {_POD}| select({condition}) "
        '| [.metadata.namespace + "/" + .metadata.name, .status.phase, '
        '"\\($ready)/\\(.spec.containers | length)", ($restarts | tostring), ([$now, (.status.reason // "")] '
        '| map(select(. != "")) | join(",")), $before, (.spec.nodeName // "")] | @tsv'
    )
    rows = read_rows(asked, "pods", expression)
    if not rows.failure and not rows.cells and not named:
        return answer(asked, f"No pod {state} {rows.place}.")
    ordered = tuple(sorted(rows.cells, key=lambda cells: -_number(cells)))
    shown = Rows(cells=ordered, place=rows.place, failure=rows.failure, source=rows.source)
    lead = f"{counted(len(ordered), 'pod')} {state if len(ordered) == 1 else _plural(state)} {rows.place}:"
    header = ("pod", "phase", "ready", "restarts", "now", "last termination", "node")
    return rows_answer(asked, shown, f"pod that {state}", header, lead)


def _number(cells: tuple[str, ...]) -> int:
    return int(cells[3]) if len(cells) > 3 and cells[3].isdigit() else 0


def _plural(state: str) -> str:
    """Change the verbs in a pod state to the plural."""
    plurals = {"is": "are", "has": "have", "was": "were", "exists": "exist"}
    return " ".join(plurals.get(word, word) for word in state.split(" "))


def _state(question: Question) -> tuple[str, str]:
    """Return the pod state that the question asks for, as a phrase and as a jq condition."""
    crashing = '($now | test("CrashLoopBackOff|Error|OOMKilled")) or ($restarts > 0 and $before != "")'
    tests: tuple[tuple[tuple[str, ...], str, str], ...] = (
        (("pending", "unscheduled", "unschedulable"), "is Pending", '.status.phase == "Pending"'),
        (("evicted",), "is evicted", '.status.reason == "Evicted"'),
        (("oomkilled",), "was OOMKilled", '($now + $before) | test("OOMKilled")'),
        (("crashing", "crashed", "crash", "crashlooping", "crashloopbackoff"), "is crashing or has crashed", crashing),
        (("restarts", "restarted", "restarting", "restart"), "has restarted", "$restarts > 0"),
        (("terminating",), "is being deleted", ".metadata.deletionTimestamp != null"),
        (("completed", "succeeded"), "has completed", '.status.phase == "Succeeded"'),
        (("unready", "notready", "unhealthy", "failing", "waiting"), "is not ready or has failed", _NOT_READY),
    )
    for words, spoken, condition in tests:
        if question.says(*words):
            return spoken, condition
    negated = question.has("not ready", "isn't ready", "aren't ready", "not running", "isn't running", "aren't running")
    if negated:
        return "is not ready", _NOT_READY
    if question.says("failed"):
        return "has failed", '.status.phase == "Failed"'
    if question.says("running"):
        return "is running", '.status.phase == "Running"'
    if question.says("ready"):
        return "is ready", '.status.phase == "Running" and $ready == (.spec.containers | length)'
    return "exists", "true"


def changes(asked: InventoryQuestion) -> str:
    """List the newest objects, or the changes to a named object in the last 24 hours."""
    names = wanted_names(asked)
    if names and asked.lookups.has(RELATED_TOOL):
        located = locate(asked.lookups, names, asked.scope.namespace)
        if located.state == "found":
            ref = located.objects[0]
            told = asked.lookups.ask(RELATED_TOOL, resource=resource_path(ref), namespace=ref.namespace)
            return _changes_of(asked, str(ref), told.text)
        if any(each.certain for each in names):
            return nothing_answer(asked, "change", asked.place)
    expression = (
        '[.items[] | select(.metadata.name != "kube-root-ca.crt") | [.metadata.creationTimestamp, '
        f'{_WHO}, (.metadata.annotations["deployment.kubernetes.io/revision"] // ""), '
        '([.spec.template.spec.containers[]?.image] | join(" "))]] | sort_by(.[0]) | reverse | .[:25][] | @tsv'
    )
    kinds = "deployments,replicasets,statefulsets,daemonsets,cronjobs,configmaps,services"
    rows = read_rows(asked, kinds, expression)
    lead = (
        f"Newest objects {rows.place}. A new ReplicaSet means that its Deployment was rolled out. "
        "Edits to existing objects are not shown."
    )
    return rows_answer(asked, rows, "object", ("created", "object", "revision", "images"), lead)


def _changes_of(asked: InventoryQuestion, name: str, text: str) -> str:
    """Write the answer from the changes section of a `kubernetes_related` result."""
    lines = text.split("\n")
    heading = next((index for index, line in enumerate(lines) if line.startswith("changed in")), None)
    if heading is None:
        return answer(asked, f"No changes to {code(name)} found in the last 24 hours. {one_line(lines[0], 200)}.")
    end = next((i for i in range(heading + 1, len(lines)) if not lines[i].startswith(" ")), len(lines))
    return answer(
        asked, f"Changes to {code(name)} in the last 24 hours:\n{excerpt(chr(10).join(lines[heading + 1 : end]))}"
    )
