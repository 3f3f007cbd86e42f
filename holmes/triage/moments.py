"""Answers when something happened to an object: its creation, its last restart, its last or next run, its last scaling.

The words of a question name topics. `object_times.py` knows the times of each kind for these topics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import duration, exact_duration, text, written
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.causes import look_for_cause
from holmes.triage.facts import fact, table_of
from holmes.triage.grammar import RESTART, SOMEBODY
from holmes.triage.lifetimes import before_end
from holmes.triage.log_errors import asks_error_lines
from holmes.triage.log_times import told_by_logs
from holmes.triage.object_times import duration_of_run, times_of
from holmes.triage.pods_asked import workloads_named
from holmes.triage.points import number_of
from holmes.triage.states import is_ready
from holmes.triage.subjects import Named
from holmes.triage.vocabulary import beginnings, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.object_times import ObjectTime, Topic
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_RUNS: Final = ("CronJob", "Job")
_ENDED: Final[tuple[Topic, ...]] = ("ended",)
_FAILED: Final[tuple[Topic, ...]] = ("failed",)
_TOPICS: Final[tuple[tuple[tuple[Topic, ...], tuple[str, ...]], ...]] = (
    (("next run",), ("CronJob",)),
    (("expires",), ()),
    (("issued",), ("Certificate",)),
    (("renewal",), ()),
    (("scaled",), ()),
    (("deletion",), ()),
    (("cordoned", "changed"), ("Node",)),
    (("succeeded", "completed"), _RUNS),
    (_FAILED, _RUNS),
    (("run", "started"), _RUNS),
    (_ENDED, ()),
    (("unready",), ()),
    (("broken",), ()),
    (("ready",), ()),
    (("rolled out", "created"), ()),
    (("changed", "rolled out", "scaled"), ()),
    (("started", "ready"), ()),
    (("created",), ()),
)
"""The topics of a question, the most specific first, and the kinds of subjects. The vocabulary has the words of the
first topic of each group. The first topic that objects have decides."""
_NOT_READY: Final = expression(
    r"\b(?:not|n't|no longer|nicht|no|pas|plus) (?:\w+ ){0,2}(?:ready|available|reachable|healthy|bereit|verfugbar"
    r"|erreichbar|dispon|list[oa]|pret|accessible)"
)
_NONE: Final = (
    (_ENDED, "No restart"),
    (_FAILED, "No failed run"),
    (("next run",), "No next run"),
    (("issued",), "No issue date"),
)

_TOPIC_WORDS: Final = tuple(dict.fromkeys(group[0] for group, _ in _TOPICS))

_SINCE_WHEN: Final = expression(
    r"\bsince (?:when|what time)|\bhow long (?:has|have|is|are|was|were|did|does)|\bwie lange\b"
    r"|\b(?:how many|wie viele|cuant[oa]s|combien de) (?:days?|hours?|minutes?|weeks?|tagen?|stunden?|dias|horas|jours"
    r"|heures)\b|\bseit (?:wann|wie lange|welche[rm])|\bdesde (?:cuando|que (?:hora|dia|fecha)|hace cuanto)"
    r"|\b(?:hace )?cuanto (?:tiempo )?(?:lleva|hace)|\bhace cuanto|\ba partir de (?:cuando|que hora)"
    r"|\bdepuis (?:quand|combien|quelle heure)"
)
_NOUN: Final = expression(
    r"\b(?<!since )(?<!seit )(?<!desde )(?<!depuis )(?:first|erste[rsn]?|primera?|premiere?"
    r"|last|latest|most recent|previous|next|letzte[rsn]?|nachste[rsn]?|ultim[oa]|proxim[oa]|dernier|derniere"
    r"|prochaine?)\s+(?:\w+ )?(?:run|execution|restart|crash|kill|oom|end|failure|success|start|scaling|rollout"
    r"|deployment|deploy|release|lauf|neustart|absturz|skalierung|ejecucion|reinicio|caida|arranque|despliegue"
    r"|redemarrage|plantage|demarrage|deploiement|time|renewal)\b"
    r"|\b(?:zuletzt|letztmals|por ultima vez|pour la derniere fois)\b"
)
_ACTION: Final = expression(
    r"\b(?:last|latest|most recent|letzte[rsn]?|ultim[oa]|derniere?)\s+(?:\w+ )?\w+|\blast \w+(?:ed|t)\b"
)
"""Something that a program did last: "the last charge in paygate". Objects know only their own times."""
_TOOK: Final = expression(
    r"\bhow long (?:did|does) .{1,60} run\b|\ben combien de temps\b|\bwie lange lief\b"
    r"|\b(?:how long|wie lange?|cuanto|combien de temps)\b.{0,60}\b(?:takes?|took|taken|last|lasted|run for|dauert"
    r"|braucht|brauchte|benotigt|tarda|dauerte|gedauert|gebraucht|tard[oa]|dur[oa]|dure|pris|mis)\b|\b(?:duration|dauer|laufzeit|duracion|duree)\b"
)
_LAST_RUNS: Final = expression(
    r"\b(?:last|latest|letzten?|ultim[oa]s|dernieres?|derniers)\s(?P<number>\d{1,2}|two|three|four|five|ten|zwei|drei|vier|funf"
    r"|zehn|dos|tres|cuatro|cinco|diez|deux|trois|quatre|cinq|dix)\b"
)
_HOW_OFTEN: Final = expression(
    r"\b(?:how often (?:does|is|do|will)|how frequently|wie oft (?:lauft|wird|startet)|wie haufig|con que frecuencia"
    r"|cada cuanto|a quelle frequence|tous les combien)\b"
)
_FUTURE: Final = expression(r"\b(?:will|wird|werden)\b")
_DID: Final = expression(
    r"(?:did|has|have|hat|haben|ist|sind|wurden?|se ha|se han|ha|han|est-ce que|a-t-il"
    r"|.{1,60} (?:a-t-il|s'est-il|a-t-elle))\b"
)
_ACTS: Final = expression(rf"\w+ {SOMEBODY} {RESTART}")  # "did anyone restart web" asks for a rollout
_FIRST: Final = expression(r"\b(?:first|erste[ns]?|zuerst|primer[oa]?|premiere?)\b")
_WHAT: Final = word_list("what changed")


def asks_time(question: Question, subject: Subject) -> bool:
    """Return whether a question asks when something happened to the named objects, or since when it lasts."""
    objects, text_of = subject.objects, question.text
    spaces = "Namespace" in question.kinds and subject.namespaces
    if _asks_how_often(question, subject):
        return True
    if _asks_if_ended(question, subject) or _asks_if_runs(question, subject):
        return True
    if _TOOK.search(text_of):
        return any(each.kind in _RUNS for each in objects)
    if (
        not (objects or spaces)
        or question.asks("logs", "why")
        or (question.asks("count") and not _SINCE_WHEN.search(text_of))  # "how many mails were sent in the last run"
        or asks_error_lines(question, subject)
        or not (question.asks("when") or _SINCE_WHEN.search(text_of) or _NOUN.search(text_of))
    ):
        return False
    if question.asks("changes") and question.words[0] in _WHAT:
        return False  # "what changed, and when" lists the changes
    return bool(_topics(question, objects)) or not (question.symptoms or question.asks("trouble", "changes"))


def _asks_how_often(question: Question, subject: Subject) -> bool:
    """Return whether a question asks how often a CronJob runs, which its schedule tells."""
    cron = any(each.kind == "CronJob" for each in subject.objects)
    return cron and question.period is None and _HOW_OFTEN.search(question.text) is not None


def _asks_if_ended(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if the named objects restarted or crashed: "did web restart today"."""
    other = question.asks("why", "when", "logs", "count", "list", "health", "now") or question.symptoms - {
        "crash",
        "memory",
    }
    runs = any(each.kind in (*WORKLOADS, "Pod") for each in subject.objects) and not _ACTS.match(question.text)
    return (
        runs and not other and _DID.match(question.text) is not None and _topics(question, subject.objects) == (_ENDED,)
    )


def _asks_if_runs(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if a CronJob will run: "does month-close run again tonight"."""
    cron = any(each.kind == "CronJob" for each in subject.objects)
    words = beginnings("run").search(question.spoken) and beginnings("next run").search(question.spoken)
    return bool(cron and words) and not question.asks("why", "trouble", "logs", "count")


def asks_since_fault(question: Question, subject: Subject) -> bool:
    """Return whether a question asks since when something fails, which the cause of the fault tells."""
    vague = _SINCE_WHEN.search(question.text) is not None and not _topics(question, subject.objects)
    return asks_time(question, subject) and (vague or _is_fault(question, subject))


def _is_fault(question: Question, subject: Subject) -> bool:
    topics = _topics(question, subject.objects)
    unready = ("unready",) in topics and not all(map(is_ready, subject.objects))
    crashes = (
        _SINCE_WHEN.search(question.text) and "crashing" in question.states and not all(map(is_ready, subject.objects))
    )
    lasts = _ENDED not in topics[:1] or (_SINCE_WHEN.search(question.text) and "crashing" in question.states)
    waits = "pending" in question.states and _SINCE_WHEN.search(question.text) is not None
    return unready or waits or bool(crashes) or bool(("broken",) in topics and _FAILED not in topics and lasts)


def moments(asked: Asked) -> FirstLook:
    """Return the times of the named objects for the topic of the question."""
    question, subject = asked.question, asked.subject
    plain = before_end(asked) or told_by_logs(asked, _TOPIC_WORDS) or _without_times(asked)
    if plain is not None:
        return plain
    if _asks_if_ended(question, subject):
        return _ends(asked)
    if _is_fault(question, subject):
        return _since_fault(asked)
    topics = _topics(question, subject.objects)
    if not topics and _ACTION.search(question.text) and _SINCE_WHEN.search(question.text) is None:
        return _without_time(asked, topics)
    if not topics and _SINCE_WHEN.search(question.text):
        look = _since_fault(asked)
        if look.verdict == "cause_found":
            return look
    every = subject.named or _namespaces(asked)
    found = {named.name: times for named in every if (times := _of_subject(asked, named.objects, topics))}
    future = _FUTURE.search(question.text) and not any(
        each.at > asked.state.now for times in found.values() for each in times
    )
    return _without_time(asked, topics) if not found or future else _with_times(asked, every, found)


def _without_times(asked: Asked) -> FirstLook | None:
    """Answer with a schedule, the length of a run, or that the first restart has no time; otherwise None."""
    question, subject = asked.question, asked.subject
    if _asks_how_often(question, subject):
        return fact(asked, f"{'; '.join(_of_schedules(asked, mark='`'))}.")
    if _TOOK.search(question.text):
        took = "; ".join(_durations(asked))
        return fact(asked, f"{took}." if took else f"No finished run of {_names(asked)} is known.")
    if _topics(question, subject.objects)[:1] == (_ENDED,) and _FIRST.search(question.text):
        told = f"Only the last restart of {_names(asked)} has a time, not the first one."
        return fact(asked, told, None, "inconclusive")
    return None


def _without_time(asked: Asked, topics: Sequence[tuple[Topic, ...]]) -> FirstLook:
    """Answer that no time is known, or that nothing restarted, failed or is planned."""
    none = next((words for group, words in _NONE if group in topics), "")
    if none and ("restart" not in none or workloads_named(asked)):
        return fact(asked, f"{none} of {_names(asked)} is known.", lines=tuple(_of_schedules(asked)))
    return fact(asked, f"The time in the question is not in the objects of {_names(asked)}.", None, "inconclusive")


def _with_times(asked: Asked, every: Sequence[Named], found: Mapping[str, list[ObjectTime]]) -> FirstLook:
    topics = _topics(asked.question, asked.subject.objects)
    first = next(iter(found.values()))[0]
    now = f"{_names(asked)} is ready now. " if ("unready",) in topics and first.topic == "ready" else ""
    times = [each for one in found.values() for each in one]
    rows = [(str(each.object.ref), each.what, written(each.at), _away(asked, each.at)) for each in times]
    return fact(
        asked,
        f"{now}{'; '.join(_told(asked, each[0]) for each in found.values())}.",
        table_of(("object", "what", "time", "ago"), rows) if len(rows) > 1 else None,
        lines=tuple(_of_schedules(asked)) if topics else (),
        notes=tuple(f"The time of {named.name} is not in its objects." for named in every if named.name not in found),
    )


def _namespaces(asked: Asked) -> tuple[Named, ...]:
    """Return the namespaces of a question about namespaces themselves: "the age of the namespace shop"."""
    found = (asked.state.get("Namespace", "", name) for name in asked.subject.namespaces)
    return tuple(Named(name=each.name, objects=(each,)) for each in found if each is not None)


def _topics(question: Question, objects: Sequence[ClusterObject]) -> tuple[tuple[Topic, ...], ...]:
    """Return the topics that the words of a question name, the most specific first."""
    kinds = {each.kind for each in objects}
    plain = question.spoken
    for each in objects:
        plain = plain.replace(each.name, " ")
    fitting = (topics for topics, needed in _TOPICS if not needed or kinds & {*needed})
    found = [topics for topics in fitting if beginnings(topics[0]).search(plain)]
    return (("unready",), *found) if _NOT_READY.search(plain) else tuple(found)


def _of_subject(
    asked: Asked, objects: Sequence[ClusterObject], topics: Sequence[tuple[Topic, ...]]
) -> list[ObjectTime]:
    """Return the times of one subject for the first topic of which any is known, the newest first."""
    every = list(dict.fromkeys(each for one in objects for each in times_of(asked.state, one)))
    if ("next run",) not in topics and ("expires",) not in topics and ("renewal",) not in topics:
        every = _in_period(asked, [each for each in every if each.at <= asked.state.now])
    oldest_first = _FIRST.search(asked.question.text) is not None
    every.sort(key=lambda each: each.at if oldest_first else -each.at)
    for group in topics:
        if group == ("next run",) and any(each.boolean("spec", "suspend") for each in objects):
            return []
        for topic in ("ready",) if "unready" in group else group:
            found = [each for each in every if each.topic == topic]
            if found:
                return _own(asked, found, objects) if topic == "created" else found
        if any(group == one for one, _ in _NONE):  # "none" is an answer, which no other time may replace
            return []
    if topics or _SINCE_WHEN.search(asked.question.text) is None:
        return [] if topics else every
    started = (
        one for topic in ("started", "ready", "created") for one in [[each for each in every if each.topic == topic]]
    )
    return next((found for found in started if found), every)


def _own(asked: Asked, found: Sequence[ObjectTime], objects: Sequence[ClusterObject]) -> list[ObjectTime]:
    """Return the times of the named objects themselves, or of their pods if the question is about pods."""
    pods = [each for each in found if each.object.kind == "Pod"] if "Pod" in asked.question.kinds else []
    own = (each for each in found if each.object in objects)
    return pods or sorted(own, key=lambda each: objects.index(each.object))


def _ends(asked: Asked) -> FirstLook:
    """Answer whether the named objects restarted in the period of the question, or at all."""
    if not workloads_named(asked):  # nothing tells if a node restarted
        return _without_time(asked, (_ENDED,))
    period = asked.question.period
    start, end = period.bounds(asked.state.now) if period is not None else (0.0, asked.state.now)
    told, rows = [], []
    for named in asked.subject.named:
        found = _of_subject(asked, named.objects, (_ENDED,))
        within = [each for each in found if start <= each.at <= end]
        span = f" from {written(start)} to {written(end)}" if period is not None else ""
        last = f"; the last one: {_told(asked, found[0])}" if found and not within else ""
        told.append(
            f"Yes: {_told(asked, within[0])}"
            if within
            else f"No restart of {named.objects[0].ref} is known{span}{last}"
        )
        rows += [(str(each.object.ref), each.what, written(each.at), _away(asked, each.at)) for each in within]
    return fact(
        asked, f"{'; '.join(told)}.", table_of(("object", "what", "time", "ago"), rows) if len(rows) > 1 else None
    )


def _in_period(asked: Asked, found: list[ObjectTime]) -> list[ObjectTime]:
    """Return the times in the period of the question, or all of them if none is in it."""
    period = asked.question.period
    start, end = period.bounds(asked.state.now) if period is not None else (0.0, asked.state.now)
    return [each for each in found if start <= each.at <= end] or found


def _since_fault(asked: Asked) -> FirstLook:
    """Answer since when a subject is not ready, from its incident, or from its own condition."""
    look = look_for_cause(asked)
    times = [each for one in asked.subject.objects for each in times_of(asked.state, one)]
    since = min((each.at for each in times if each.topic == "unready"), default=None)
    if look.verdict == "healthy":
        ready = next((each for each in times if each.topic == "ready"), None)
        return look if ready is None else replace(look, summary=f"{look.summary} {_told(asked, ready)}.")
    if look.since or look.verdict != "cause_found":
        return look
    changed = max((each for each in times if each.topic == "changed"), key=lambda each: each.at, default=None)
    lines = (*look.lines, _told(asked, changed)) if changed is not None else look.lines
    if since is None:
        edited = next(_last_changes(asked, look.culprit), None)
        told = f" {_told(asked, edited)}." if edited is not None else ""
        return replace(look, summary=f"{look.summary}{told}", lines=lines)
    return replace(look, since=written(since), lines=lines)


def _last_changes(asked: Asked, culprit: str) -> Iterator[ObjectTime]:
    """Yield the changes of the object at fault, the newest first: no condition of a Service tells since when."""
    found = asked.state.written(culprit)
    times = times_of(asked.state, found) if found is not None else ()
    yield from sorted((each for each in times if each.topic == "changed"), key=lambda each: -each.at)


def _durations(asked: Asked) -> Iterator[str]:
    """Yield how long the newest finished run of each subject took, or its finished runs on average."""
    for each in asked.subject.objects:
        jobs = sorted((each, *asked.state.owned_by(each, "Job")), key=lambda one: -one.created)
        done = [(job, took) for job in jobs if (took := duration_of_run(job)) is not None]
        several = _LAST_RUNS.search(asked.question.text)
        if several is not None and each.kind == "CronJob":
            lengths = {job.uid: f"took {exact_duration(took)}" for job, took in done}
            runs = [job for job in jobs if job.kind == "Job"][: int(number_of(several["number"]))]
            yield from (f"{job.ref}: {lengths.get(job.uid, 'not completed')}" for job in runs)
            continue
        if len(done) > 1 and asked.question.asks("average"):
            mean = sum(took for _, took in done) / len(done)
            yield f"{each.ref}: {len(done)} finished runs took {exact_duration(mean)} on average"
        elif done:
            yield f"{done[0][0].ref}: took {exact_duration(done[0][1])}"


def _told(asked: Asked, each: ObjectTime) -> str:
    return f"{each.object.ref}: {each.what} {written(each.at)}, {_away(asked, each.at)}"


def _away(asked: Asked, at: float) -> str:
    """Return how long ago a time was, or in how long it will be."""
    seconds = asked.state.now - at
    return f"in {duration(-seconds)}" if seconds < 0 else f"{duration(seconds)} ago"


def _of_schedules(asked: Asked, *, mark: str = "") -> Iterator[str]:
    """Yield the schedules of CronJobs, which say when they run. Running text needs a mark around them."""
    for each in asked.subject.objects:
        if each.kind == "CronJob":
            zone = each.text("spec", "timeZone") or "time zone of the controller, usually UTC"
            suspended = ", suspended" if each.boolean("spec", "suspend") else ""
            schedule = f"{mark}{text(each.body, 'spec', 'schedule')}{mark}"
            yield f"{each.ref}: schedule {schedule} ({zone}){suspended}"


def _names(asked: Asked) -> str:
    return ", ".join(dict.fromkeys(str(named.objects[0].ref) for named in asked.subject.named))
