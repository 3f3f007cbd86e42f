"""Contains the English past participles that log lines have, by the forms of a verb in questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    "copied": "kopiert copio copiado copiados copiadas copiaron copie copies copiees",
    "skipped": "ubersprungen ausgelassen omitio omitido omitidos omitidas omitieron saute sautes sautee sautees",
    "stored": "gespeichert guardo guardado guardados guardadas stocke stockes stockees",
}
"""Past participles by forms that are not made by an ending, and by their forms in other languages."""
PARTICIPLES: Final = {form: participle for participle, forms in _FORMS.items() for form in forms.split()}


def participles(word: str) -> Iterator[str]:
    """Yield what the past participle of a word can be: `imported` of "import" and "imports"."""
    if word in PARTICIPLES:
        yield PARTICIPLES[word]
    for stem in (word, word.removesuffix("es"), word.removesuffix("s"), word.removesuffix("ing")):
        yield from (f"{stem}ed", f"{stem}d", f"{stem[:-1]}ied", f"{stem}{stem[-1:]}ed")
