"""Reads how many things a program handled as a number of its lines: "how many mails did it send", `sent=12`.

Keys of log lines are past participles in English. The question has another form of the verb, or another language.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.triage.log_answers import asks_logs
from holmes.triage.log_lines import lines_of
from holmes.triage.log_values import series_of
from holmes.triage.vocabulary import beginnings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

_FORMS: Final = {
    "sent": "send sends sending verschickt versendet gesendet geschickt envia envio enviado enviados enviadas enviaron"
    " envoye envoyes envoyee envoyees",
    "processed": "verarbeitet bearbeitet proceso procesado procesados procesadas procesaron traite traites traitees",
    "received": "empfangen erhalten recibio recibido recibidos recibidas recibieron recu recus recue recues",
    "written": "write writes wrote geschrieben escribio escrito escritos escritas ecrit ecrits ecrite ecrites",
    "delivered": "zugestellt ausgeliefert entrego entregado entregados entregadas livre livres livree livrees",
    "imported": "importiert importo importado importados importadas importaron importe importes importees",
    "exported": "exportiert exporto exportado exportados exportadas exportaron exporte exportes exportees",
    "created": "erstellt angelegt creo creado creados creadas crearon cree crees creee creees",
    "deleted": "geloscht borro borrado borrados borradas borraron supprime supprimes supprimees",
    "printed": "gedruckt imprimio impreso impresos impresas imprime imprimes imprimees",
    "uploaded": "hochgeladen subio subido subidos subidas televerse televerses televersees",
    "published": "veroffentlicht publico publicado publicados publicadas publie publies publiees",
    "sold": "sell sells verkauft vendio vendido vendidos vendidas vendieron vendu vendus vendues",
    "paid": "pay pays bezahlt pagado pagados pagadas pagaron paye payes payees",
    "built": "build builds gebaut construyo construido construidos construit construits",
    "stored": "gespeichert guardo guardado guardados guardadas stocke stockes stockees",
}
"""Past participles by forms that are not made by an ending, and by their forms in other languages."""
_PARTICIPLE: Final = {form: participle for participle, forms in _FORMS.items() for form in forms.split()}


def with_participles(asked: Asked) -> Asked:
    """Add the participles of the question's verbs that are keys of the lines, if it counts what a program handled."""
    question = asked.question
    if not _counts_handled(question, asked.subject):
        return asked
    keys = {each.key.lower() for each in series_of(lines_of(asked))}
    said = {form for word in question.words for form in _participles(word)}
    verbs = {word for word in question.words if not keys.isdisjoint(_participles(word))}
    unknown = tuple(word for word in asked.subject.unknown if word not in verbs)
    found = tuple(each for each in question.found if question.words[each.first] not in keys)  # `failed=0` reports none
    words = (*question.words, *sorted(keys & said - {*question.words}))
    return replace(
        asked,
        question=replace(question, words=words, found=found),
        subject=replace(asked.subject, unknown=unknown),
    )


def _counts_handled(question: Question, subject: Subject) -> bool:
    """Return whether a question counts things of named programs, and not lines."""
    lines = beginnings("line words").search(question.spoken) or question.quoted or question.asks("logs")
    return question.asks("count") and bool(subject.named) and not lines and asks_logs(question, subject)


def _participles(word: str) -> Iterator[str]:
    """Yield what the past participle of a word can be: `imported` of "import" and "imports"."""
    if word in _PARTICIPLE:
        yield _PARTICIPLE[word]
    for stem in (word, word.removesuffix("es"), word.removesuffix("s"), word.removesuffix("ing")):
        yield from (f"{stem}ed", f"{stem}d", f"{stem[:-1]}ied", f"{stem}{stem[-1:]}ed")
