"""Answers when something happened to an object: its creation, its start, its last restart, its last run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.fields import duration, moment, text, written
from holmes.triage.complaints import SINCE_WHEN
from holmes.triage.facts import fact, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

_WANTED: Final = tuple(
    (what, frozenset(words.split()))
    for what, words in (
        ("last end", "restart restarted crash crashed killed died oom neu neustart abgesturzt reinicio redemarre"),
        ("cordoned", "cordoned gesperrt acordonado unschedulable"),
        ("last successful run", "successfully succeeded erfolgreich exito succes"),
        (
            "completed",
            "finish finished finishes completed complete done ended fertig beendet termino terminado fini termine",
        ),
        ("last run", "run ran lief gelaufen scheduled corrio ejecuto tourne"),
        ("started", "uptime running started start startet gestartet lauft laeuft arranco iniciado demarre up tourne"),
        ("created", "created join joined old alt age creo creado cree erstellt deployed antiguo"),
    )
)
"""The times that the words of a question ask for, the most specific first."""

_TOOK: Final = frozenset({"take", "took", "dauerte", "gedauert", "tardo", "duro", "dure", "pris"})


def moments(asked: Asked) -> FirstLook:
    """Return the times of the named objects, with the one that the question asks for first."""
    subject = asked.subject.objects[0].ref
    found = [(each, what, at) for each in _all(asked) for what, at in _times(each) if at]
    wanted = [what for what, words in _WANTED if not words.isdisjoint(asked.question.words)]
    if not wanted and any(each in asked.question.text for each in SINCE_WHEN):
        wanted = list(dict.fromkeys(what.partition(",")[0] for _, what, _ in found))
    known = [entry for entry in found if entry[1].partition(",")[0] in wanted]
    took = next((one for one in found if one[1] == "took"), None)
    if took is not None and not _TOOK.isdisjoint(asked.question.words):
        return fact(asked, f"{took[0].ref}: took {duration(took[2])}.")
    found = [entry for entry in found if entry[1] != "took"]
    if not known and wanted[:1] == ["last end"]:
        return fact(asked, f"No restart of {subject} is known.")
    if not known or "will" in asked.question.words:
        return fact(asked, f"The time in the question is not in the objects of {subject}.", None, "inconclusive")
    order = {what: index for index, what in enumerate(wanted)}
    found.sort(key=lambda entry: (order.get(entry[1].partition(",")[0], len(order)), -entry[2]))
    each, what, at = found[0]
    ago = duration(max(0.0, asked.state.now - at))
    rows = [
        (str(one.ref), name, written(when), duration(max(0.0, asked.state.now - when))) for one, name, when in found
    ]
    return fact(
        asked, f"{each.ref}: {what} {written(at)}, {ago} ago.", table_of(("object", "what", "time", "ago"), rows)
    )


def _all(asked: Asked) -> Iterator[ClusterObject]:
    seen = set()
    for each in asked.subject.objects:
        for one in (each, *asked.state.owned_by(each, "Job"), *asked.state.pods_of(each)):
            if one.uid not in seen:
                seen.add(one.uid)
                yield one


def _times(each: ClusterObject) -> Iterator[tuple[str, float]]:
    yield "created", each.created
    if each.kind == "Pod":
        for container in containers_of(each):
            yield "started", moment(text(container.status, "state", "running", "startedAt")) or 0.0
            ended = container.last_terminated
            reason = text(ended, "reason")
            yield f"last end{f', {reason}' if reason else ''}", moment(text(ended, "finishedAt")) or 0.0
    for what, path in (
        ("last run", ("status", "lastScheduleTime")),
        ("last successful run", ("status", "lastSuccessfulTime")),
        ("started", ("status", "startTime")),
        ("completed", ("status", "completionTime")),
    ):
        if each.kind != "Pod":
            yield what, moment(each.text(*path)) or 0.0
    start, end = moment(each.text("status", "startTime")), moment(each.text("status", "completionTime"))
    if each.kind == "Job" and start and end:
        yield "took", end - start
    for taint in each.children("spec", "taints") if each.kind == "Node" else ():
        if text(taint, "key") == "node.kubernetes.io/unschedulable":
            yield "cordoned", moment(text(taint, "timeAdded")) or 0.0
