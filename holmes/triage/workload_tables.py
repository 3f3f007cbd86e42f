"""Inventory questions about workloads and pods: images, replicas, resources, where they run, what state they are in.

Called by `inventory`. Each is one jq call and a table of exactly what it gave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.commands import resource_path
from holmes.triage.markdown import code, counted, one_line
from holmes.triage.objects import RELATED_TOOL, locate
from holmes.triage.rows import Rows, answer, name_filter, nothing_answer, read_rows, rows_answer, wanted_names
from holmes.triage.undiagnosed import excerpt

if TYPE_CHECKING:
    from holmes.triage.question import Question
    from holmes.triage.rows import Asked

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


def images(asked: Asked) -> str:
    """Which images workloads run."""
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


def replicas(asked: Asked) -> str:
    """How many replicas workloads want and have."""
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
            asked, f"{code(who)} wants `{wanted}` replicas; `{ready}` are ready, `{updated}` up to date.{rows.marker}"
        )
    return rows_answer(asked, rows, "workload", ("object", "wanted", "ready", "up to date"))


def resources(asked: Asked) -> str:
    """Requests and limits of containers."""
    expression = (
        f".items[] | select({name_filter(wanted_names(asked))}) | {_WHO} as $who | {_TEMPLATE} as $spec "
        f'| {_CONTAINERS.replace("{spec}", "$spec")} | [$who, .name, (.resources.requests.cpu // "none"), '
        '(.resources.limits.cpu // "none"), (.resources.requests.memory // "none"), '
        '(.resources.limits.memory // "none")] | @tsv'
    )
    rows = read_rows(asked, _TEMPLATES, expression)
    header = ("object", "container", "CPU request", "CPU limit", "memory request", "memory limit")
    return rows_answer(asked, rows, "container", header)


def placement(asked: Asked) -> str:
    """On which nodes pods run."""
    expression = (
        f".items[] | select({name_filter(wanted_names(asked))}) | {_POD}"
        '| [.metadata.namespace + "/" + .metadata.name, .status.phase, (.spec.nodeName // "not scheduled"), '
        '(.status.podIP // "")] | @tsv'
    )
    rows = read_rows(asked, "pods", expression)
    return rows_answer(asked, rows, "pod", ("pod", "phase", "node", "IP"))


def pods(asked: Asked) -> str:
    """Pods in the state that the question names, those with the most restarts first."""
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
    header = ("pod", "phase", "ready", "restarts", "now", "ended before with", "node")
    return rows_answer(asked, shown, f"pod that {state}", header, lead)


def _number(cells: tuple[str, ...]) -> int:
    return int(cells[3]) if len(cells) > 3 and cells[3].isdigit() else 0


def _plural(state: str) -> str:
    return {"is ": "are ", "has ": "have "}.get(state[: state.find(" ") + 1], "") + state[state.find(" ") + 1 :]


def _state(question: Question) -> tuple[str, str]:
    """The state that is asked for, in words and as a condition of jq."""
    crashing = '($now | test("CrashLoopBackOff|Error|OOMKilled")) or ($restarts > 0 and $before != "")'
    tests: tuple[tuple[tuple[str, ...], str, str], ...] = (
        (("pending", "unscheduled", "unschedulable"), "is Pending", '.status.phase == "Pending"'),
        (("evicted",), "is evicted", '.status.reason == "Evicted"'),
        (("oomkilled",), "was OOMKilled", '($now + $before) | test("OOMKilled")'),
        (("crashing", "crashed", "crash", "crashlooping", "crashloopbackoff"), "is crashing or has crashed", crashing),
        (("restarts", "restarted", "restarting", "restart"), "has restarted", "$restarts > 0"),
        (("terminating",), "is being deleted", ".metadata.deletionTimestamp != null"),
        (("completed", "succeeded"), "has completed", '.status.phase == "Succeeded"'),
        (("unready", "notready", "unhealthy", "failing", "waiting"), "is not ready or failed", _NOT_READY),
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
    return "is there", "true"


def changes(asked: Asked) -> str:
    """What was created or rolled out last; of a named object what changed in the last day."""
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
        f"The newest objects {rows.place}; a new ReplicaSet is a rollout of its Deployment. "
        "An edit of an object that was there before leaves no time here."
    )
    return rows_answer(asked, rows, "object", ("created", "object", "revision", "images"), lead)


def _changes_of(asked: Asked, name: str, text: str) -> str:
    """The lines of the section about changes."""
    lines = text.split("\n")
    heading = next((index for index, line in enumerate(lines) if line.startswith("changed in")), None)
    if heading is None:
        return answer(asked, f"No change of {code(name)} in the last 24 hours was found: {one_line(lines[0], 200)}.")
    end = next((i for i in range(heading + 1, len(lines)) if not lines[i].startswith(" ")), len(lines))
    return answer(
        asked, f"Changes of {code(name)} in the last 24 hours:\n{excerpt(chr(10).join(lines[heading + 1 : end]))}"
    )
