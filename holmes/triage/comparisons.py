"""Answers which of several named objects or namespaces has more of a kind: "which has more pods, node-1 or node-2".

Each of them gets a number of its own. A condition that could not be applied leaves the question open.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.triage.facts import fact, not_answered, table_of
from holmes.triage.ledger import Ledger
from holmes.triage.markdown import counted
from holmes.triage.selection import select
from holmes.triage.vocabulary import word_list
from holmes.values.expressions import expression
from holmes.values.texts import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_COMPARING: Final = frozenset({
    "more", "fewer", "less", "mehr", "weniger", "mas", "menos", "plus", "moins", "most", "fewest", "meisten",
    "wenigsten",
})  # fmt: skip
"""Words before a noun that compare how many each one has."""
_BETWEEN: Final = frozenset({"the", "die", "de", "running", "ready"})
_LEAST: Final = 2
CHOOSING: Final = expression(
    r"^\W*(?:and |und |y |et )?(?P<of>which|welche[rsnm]?|cual(?:es)?|quel(?:le)?s?|que|what|was)\b(?![^,;?!]* than \d)"
    r"[^,;?!]*?\b(?P<how>(?<!no )more|fewer|less|worse|better|slower|faster|busier|healthier|langsamer|schneller"
    r"|(?<!nicht )(?<!nichts )(?<!keine )(?<!kein )(?<!seit )mehr|weniger|schlechter|besser"
    r"|(?<!el )(?<!la )(?<!lo )(?<!al )(?<!los )(?<!las )(?:mas|menos)(?! de \d)|peor|mejor"
    r"|(?<!le )(?<!la )(?<!les )(?<!au )(?<!de )(?:plus|moins)(?! de \d)|pire)\b"
)
"""A question for one of several by how much it has of something: "which pod of web has more errors"."""
POSSIBLE_PLACE: Final = expression(
    r"\b(?P<may>(?:could|would|might|konnten?|wurden?|podrian?|pourrai(?:t|ent)|(?:can|kann|puede|peut)(?= (?:it|take"
    r"|host|fit|accept|hold|run)\b))(?! (?:you|i|we|one|du|ich|man|wir|yo|usted|tu|vous|je|on|nous)\b)(?: [\w-]+)?)"
)
"""A question for where something can run, not where it runs: "which node could take it"."""
SAME_CAUSE: Final = expression(
    r"\b(?:same|common|single|shared|gleichen?|gleicher?|selben?|selber?|d[ie]+selben?|derselben?|gemeinsamen?|misma|mismo|comun|unica"
    r"|meme|commune?) (?:\w+ ){0,2}?(?:cause|reason|root cause|culprit|ursache|grund|causa|motivo|razon|raison)\b"
)
"""A question for whether several subjects fail because of one cause."""
_NO_LONGER: Final = expression(r"\bn(?:e |')")
_SURELY: Final = ("which", "welch", "cual", "quel")


def chosen_by(question: Question) -> str:
    """Return the word by which a question chooses one of several, or an empty string."""
    match = CHOOSING.match(question.text)
    aged = question.older_seconds or question.newer_seconds
    gone = match is not None and match["how"] == "plus" and _NO_LONGER.search(question.text)
    if match is None or question.comparisons or question.asks("why") or aged or gone:
        return ""
    nouns = {each.first for each in question.found if each.sense == "kind"}
    return match["how"] if match["of"].startswith(_SURELY) or nouns & {1, 2} else ""


def _compared(question: Question, subject: Subject) -> str:
    """Return the kind of which each of several has a number, or an empty string."""
    own = {"Namespace", *(named.objects[0].kind for named in subject.named)}
    for place in question.found:
        before = [word for word in question.words[max(0, place.first - 2) : place.first] if word not in _BETWEEN]
        after = question.words[place.last + 1 : place.last + 2]  # "how many pods more has node-1"
        compared = not _COMPARING.isdisjoint((*before[-1:], *after))
        if place.sense == "kind" and place.name not in own and compared:
            return place.name
    return ""


def asks_comparison(question: Question, subject: Subject) -> bool:
    """Return whether a question compares how much of a kind each of several has."""
    several = max(len(subject.named), 0 if subject.named else len(subject.namespaces)) >= _LEAST
    other = question.asks("why", "trouble", "logs", "changes", "usage", "resources") or question.comparisons
    return several and not other and bool(_compared(question, subject))


def comparison(asked: Asked) -> FirstLook:
    """Return the number of each, the highest first."""
    kind = _compared(asked.question, asked.subject)
    rows: list[tuple[str, int]] = []
    for name, part in _each(asked, kind):
        selection = select(part)
        if selection.left_out or selection.unread:
            return not_answered(asked, (*selection.left_out, *selection.unread), to=plural(kind))
        told = [each for each in selection.told if not each.startswith(("of ", "named "))]
        conditions = f" ({'; '.join(told)})" if told else ""
        rows.append((f"{name}{conditions}", len(selection.objects)))
    rows.sort(key=lambda row: -row[1])
    numbers = "; ".join(f"{name}: {counted(number, kind.partition('.')[0])}" for name, number in rows)
    table = table_of(("name", kind.partition(".")[0]), [(name, str(number)) for name, number in rows])
    place = f" {asked.subject.place}" if asked.subject.named and asked.subject.namespaces else ""
    return fact(asked, f"{numbers}{place}.", table)


def _each(asked: Asked, kind: str) -> Iterator[tuple[str, Asked]]:
    """Yield the question about each one alone."""
    subject, words = asked.subject, word_list("conjunctions")
    kept = tuple(
        each for each in asked.question.found if each.name != "either" and (each.sense != "kind" or each.name == kind)
    )
    question = replace(asked.question, found=kept)
    alone = (
        [(str(named.objects[0].ref), replace(subject, named=(named,))) for named in subject.named]
        or [(f"namespace {space}", replace(subject, namespaces=(space,))) for space in subject.namespaces]
    )  # fmt: skip
    for name, part in alone:
        ledger = Ledger.of(question, part)
        ledger.take("word", *_COMPARING, *words, "than", "als", "que")
        yield name, replace(asked, question=question, subject=part, ledger=ledger)
