"""Recognises questions about what no object tells: backups, how full disks are, and what would happen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

_BACKUP: Final = expression(r"\bback(?:ed |ing |-)?ups?\b|\bgesichert\b|\bsicherung|\bcopias? de seguridad|\bsauvegard")
_DISK: Final = r"(?:disks?|volumes?|storage|pvcs?|platte|disco|disque)"
_FULL: Final = r"(?:full|fills?|filling|voll|llen[oa]|plein\w*)"
_FILLING: Final = expression(rf"\b{_DISK}\b.{{0,40}}\b{_FULL}\b|\b{_FULL}\b.{{0,20}}\b{_DISK}\b")
_SUPPOSED: Final = expression(
    r"\b(?:what (?:happens|would happen|will happen) (?:if|when|to)|was (?:passiert|ware),? (?:wenn|falls)"
    r"|que (?:pasa|pasaria|ocurre) (?:si|cuando)|que se passe(?:-t-il|rait-il)? (?:si|quand))\b"
    r"|\bwhat if\b|\b(?:can|could|may|should|safe to|kann|darf|puedo|puede|puis-je|peut-on|if) .{0,20}"
    r"\b(?:drain|drainen|drainer|entleeren|vaciar|vider)\b"
    r"|\bsurvives?\b|\bcan .{1,40} (?:take|handle|survive) (?:all|the|another|one)\b"
    r"|\b(?:if|wenn|falls|si) [\w.-]+ (?:(?:is|goes|were) (?:down|gone|away|offline|dead)|dies|fails|crashes"
    r"|(?:se )?cae|tombe|ausfallt)\b"
)

_PAGED: Final = expression(
    r"\b(?:who|whom|(?:any|some|no)(?:one|body)|jemand|wer|wen|niemand|alguien|quien|nadie|quelqu'un|qui|personne)\b"
    r".{0,20}\b(?:paged|notified|alerted|woken|benachrichtigt|alarmiert|geweckt|avisa\w*|notifica\w*|alertee?"
    r"|prevenue?|reveillee?)\b"
)

_FACTS: Final = (
    expression(
        r"^\W*(?:does|do|did|hat|haben|tiene|tienen|a-t-il) .{1,40}?(?P<asked>\b(?:have|use|mount|include|contain"
        r"|support)\b.{0,30}?)\W*$"
    ),
    expression(
        r"^\W*(?P<asked>(?:under|with|as|through|via|by|from|unter|mit|als|von|con|bajo|como|sous|avec|comme) "
        r"(?:which|what|welche[mnrs]?|que|cual|quel\w*) \w+)\b"
    ),
    expression(
        r".*\b(?P<asked>up[ -]to[ -]date|outdated|out[ -]of[ -]date|auf dem neuesten stand|veraltet|al dia|a jour)\b"
    ),
    expression(
        r"^\W*(?P<asked>(?:what|which|was|welche[rs]?) (?:was|were|war|waren)\b.{0,30}\b(?:before|vorher|zuvor))\W*$"
    ),
)
"""Questions for a fact, which an object without a fault does not answer."""
_NEVER_READ: Final = (
    (_PAGED, "Whom an alert reaches was not read."),
    (_SUPPOSED, "The consequences were not examined."),
)


def asks_how_full(question: Question) -> bool:
    """Return whether a question asks how full a disk is, which no object tells."""
    return _FILLING.search(question.text) is not None


def not_read(question: Question, subject: Subject, *, of_faults: bool = False) -> str:
    """Return that what the question is about was not read, or an empty string.

    `of_faults` means that a fault was found, which can be the answer to a question about a full disk or an error.
    """
    if question.asks("why"):
        return ""
    runs = any(each.kind in ("CronJob", "Job") for each in subject.objects)
    if _BACKUP.search(question.text) and subject.named and not runs:
        return "Whether there is a backup of its data was not read."
    told = next((told for asked, told in _NEVER_READ if asked.search(question.text)), "")
    if told and not (question.complains and _PAGED.search(question.text)):
        return told
    if of_faults or (fact := _fact(question, subject)):
        return "" if of_faults else f"Not answered: `{fact}` is not what was checked."
    if asks_how_full(question):
        return "How full its disk is was not read."
    return "Not all logs were read." if question.asks("logs") and not subject.named else ""


def _fact(question: Question, subject: Subject) -> str:
    """Return the words by which a question asks for a fact, and neither for health nor for trouble."""
    other = question.asks("health", "trouble") or question.states or question.complains or len(subject.named) > 1
    found = (each.match(question.text) for each in _FACTS if not other)
    return next((each["asked"] for each in found if each is not None), "")
