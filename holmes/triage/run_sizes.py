"""Answers how big the result of the last run of a CronJob or a Job is, from the one line of its log with a size.

The requests of its containers are not the size of what it made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text, written
from holmes.triage.facts import fact, not_answered, place_of
from holmes.triage.log_lines import lines_of
from holmes.triage.log_values import STATISTICS
from holmes.triage.vocabulary import beginnings
from holmes.values.errors import masked
from holmes.values.expressions import expression
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_RUNS: Final = ("CronJob", "Job")
_BIG: Final = expression(
    r"\b(?:how (?:big|large)|size|wie gross|grosse|dateigrosse|(?:que|de que) tamano|tamano|quelle taille|taille"
    r"|combien pese|cuanto pesa"
    r"|(?:how many|wie viele|cuant[oa]s|combien de) (?:[kmgt]i?[bo]|bytes|(?:kilo|mega|giga|tera)(?:byte|octet)s?))\b"
)
_OF_OBJECTS: Final = expression(
    r"\b(?:images?|abbild|imagen|pods?|containers?|volumes?|pvcs?|claims?|disks?|logs?|queue|backlog|cluster|replicas?"
    r"|batch size|pool size|heap|allowed|may|can|could|should|darf|kann|puede|peut)\b"
)
"""Other things that have a size."""
_OTHER_RUN: Final = expression(
    r"\b(?:first|previous|second|third|before last|all|each|every|older|oldest|vorletzte\w*|vorherige\w*|erste\w*|alle"
    r"|jede\w*|penultim[oa]|anterior|primer[oa]?|tod[oa]s|cada|avant-dernier\w*|precedent\w*|premier\w*|tous|toutes|chaque"
    r"|runs|laufe|ejecuciones|executions|backups|snapshots|\d+)\b"
)
"""Another run than the last one, or several."""
_SIZE: Final = expression(r"(?<![\w./-])\d[\d.,]*(?: ?(?:(?i:[kmgt]i?b|bytes|octets))|[KMGT]i?)(?![\w/]| per\b| of \d)")
_OTHER_SIZE: Final = expression(
    r"(?i)\b(?:free|available|left|remaining|heap|rss|mem|memory|limit|quota|max\w*|buffers?|chunks?|threshold|fail\w*"
    r"|error)\b"
)
"""Words of lines with the size of something else than the result."""
_SHOWN_CHARACTERS: Final = 200


def asks_made_size(question: Question, subject: Subject) -> bool:
    """Return whether a question asks how big something of a run is: "how big was the last etcd snapshot"."""
    runs = bool(subject.named) and all(each.kind in _RUNS for each in subject.objects)
    plain = subject.without_names(question.spoken)
    amounts = ("memory", "cpu", "request words", "limit words", "storage words")
    other = _OF_OBJECTS.search(plain) or any(beginnings(each).search(plain) for each in amounts)
    return runs and _BIG.search(plain) is not None and not other and not question.asks("why", "trouble", "changes")


def made_size(asked: Asked) -> FirstLook:
    """Return the one line with a size in the log of the last completed run, or that no such line was read."""
    question = asked.question
    plain = asked.subject.without_names(question.spoken)
    other = _OTHER_RUN.search(plain)
    period = question.period.text if question.period is not None else ""
    statistic = next((each for each in STATISTICS if question.asks(each)), "")
    unread = period or (other[0] if other is not None else "") or statistic
    if unread:
        return not_answered(asked, (unread,))
    job = max(filter(_is_complete, _jobs(asked)), key=lambda each: each.created, default=None)
    if job is None:
        return fact(asked, f"Not known: no completed run {place_of(asked)} was read.", None, "inconclusive")
    pods = {str(pod.ref) for pod in asked.state.pods_of(job)}
    found = [line for line in lines_of(asked) if line.pod in pods and _SIZE.search(line.text)]
    found = [line for line in found if not _OTHER_SIZE.search(line.text)]
    if len(found) == 1 and len(_SIZE.findall(found[0].text)) == 1:
        line = shortened(masked(found[0].text), _SHOWN_CHARACTERS)
        when = f" at {written(found[0].at)}" if found[0].at else ""
        return fact(asked, f"The last completed run, {job.ref}, logged a size{when}: {line}")
    told = "logged several sizes" if found else "logged no size that is known to be that of its result"
    told = f"Not known: the last completed run, {job.ref}, {told}."
    return fact(asked, told, None, "inconclusive")


def _jobs(asked: Asked) -> Sequence[ClusterObject]:
    owned = (job for each in asked.subject.objects for job in (each, *asked.state.owned_by(each, "Job")))
    return [each for each in owned if each.kind == "Job"]


def _is_complete(job: ClusterObject) -> bool:
    return text(job.condition("Complete"), "status") == "True"
