"""Questions for logs: those of one object, if wanted only lines with a word. Called by `inventory`.

Lines are shown as they are; what was searched for and how much there is to see is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.citing import source_of
from holmes.triage.details import LOGS_TOOL
from holmes.triage.markdown import code, fenced, plain, sentence
from holmes.triage.objects import locate
from holmes.triage.rows import answer, failed_answer, nothing_answer, wanted_names
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.conversation import Outcome
    from holmes.triage.rows import Asked
    from holmes.values.findings import ObjectRef
    from holmes.values.json_types import JsonValue

_WITH_PODS: Final = frozenset({"Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet"})
_MOST_LINES: Final = 60
_TAIL_LINES: Final = 40
_TAIL_LINES_SEARCHED: Final = 200


def logs(asked: Asked) -> str:
    """The newest lines of the logs of the object that the question names."""
    names = wanted_names(asked)
    if not names:
        return answer(asked, "Name the pod or workload whose log you want, for example `logs of checkout in shop`.")
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
    return _shown(asked, outcome, ref, name)


def _shown(asked: Asked, outcome: Outcome, ref: ObjectRef | None, name: str) -> str:
    """The lines with their headings, the newest of each container."""
    lines = outcome.text.strip("\n").split("\n")
    start = max(1, len(lines) - _MOST_LINES)
    body = list(_without_empty_logs(lines[start:]))
    said = code(str(ref)) if ref is not None else code(name)
    wanted = f" that match {code(asked.question.searched)}" if asked.question.searched else ""
    since = f" of the last {asked.question.since}" if asked.question.since else ""
    if outcome.status != "success" or not body:
        return answer(asked, f"There are no log lines{wanted}{since} of {said}.", sentence(plain(lines[0], 400)))
    source = source_of(outcome)
    first = 1 if start == 1 else start + 1  # the sentence before the lines is the first line
    marker = source.marker(first, len(lines)) if source.lines else source.marker(1)
    left = f" (the last {len(lines) - start} lines)" if start > 1 else ""
    lead = f"Log lines{wanted}{since} of {said}{left}. {sentence(plain(lines[0], 400))}"
    return answer(asked, lead, f"{fenced(shortened(line, 400) for line in body)}\n{marker.strip()}".rstrip())


def _without_empty_logs(lines: list[str]) -> Iterator[str]:
    """`lines` without the headings of containers that have nothing to show."""
    skipped = -1
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if line.startswith("=== ") and following.startswith("showing 0 of "):
            skipped = index + 1
        elif index != skipped:
            yield line
