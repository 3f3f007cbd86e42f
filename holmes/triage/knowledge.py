"""Tells questions about Kubernetes itself, which a model answers without the cluster, from those about this cluster."""

from __future__ import annotations

from typing import Final

from holmes.triage.vocabulary import folded
from holmes.values.expressions import expression

_KNOWLEDGE: Final = expression(
    r"\b(?:mean|means|explain|difference between|example of|how (?:do|can|should) (?:i|you|we)|how to"
    r"|how do(?:es)? .{1,40} work|what (?:is|are) an?|why (?:would|should) (?:i|you|we|one)"
    r"|why does kubernetes|bedeutet|erklare|unterschied zwischen|was ist ein"
    r"|wie (?:kann|mache) (?:ich|man)|significa|explica|diferencia entre|que es una?|como (?:puedo|se)|qu'est-ce que?"
    r"|signifie|explique|difference entre|comment (?:puis-je|faire))\b"
)
"""Words of questions about Kubernetes itself, in four languages."""
_TROUBLE: Final = expression(
    r"\b(?:why|fix|repair|solve|resolve|recover|restore|again|back|broke|broken|wrong|reasons?|find out|happen\w*"
    r"|warum|wieso|weshalb|beheben|reparier\w*|kaputt|wieder|por que|arregl\w+|solucion\w+|pourquoi|repar\w+"
    r"|resoudre)\b"
)
"""Words of questions about trouble, other than those of the vocabulary, where "explain" asks why."""
_HERE: Final = expression(
    r"\b(?:our|my|this|these|those|that (?=\w+ (?:fail|crash|break|restart|die))|everything|nothing"
    r"|current(?:ly)?|right now|today|just now|in (?:our |the )?(?:production|staging|prod)|unsere?[nrsm]?"
    r"|meine?[nrsm]?|diese[nrsm]?|alles|nichts|niemand|gerade|nuestr[oa]s?|mis?|est[aeo]s?|tod[oa]s?|nada|nadie"
    r"|notre|nos|mon|mes|ces?|cette|tout|rien|personne)\b"
    r"|\bwhy (?:it|they|we|users|customers)\b|\bfir(?:es|ing)\b"
    r"|\bwhy (?!an? |kubernetes |k8s )\W?[\w.-]+\W? (?:is|are|was|were|got|gets|keeps?|has|have|fails?|crash\w*)\b"
    r"|\b(?:it|they) (?:fails?|breaks?|crash(?:es)?|hangs?|restarts?|is|are) "
    r"|\b(?:the|der|die|das|den|dem|el|la|los|las|le|les|l)\W+(?:\w+ )?(?:crash|outage|error|failure|incident|problem"
    r"|alert|site|shop|app|service|timeout|ausfall|absturz|fehler|storung|fallo|caida|alerta|panne|erreur|alerte)\w*"
)
"""Words for what is here and now."""
_GENERAL: Final = expression(
    r"\b(?:an?(?! (?:bit|little|lot|good|likely|possible|plausible|reason|cause|explanation|idea|summary|working|guess"
    r"|hint|look|problem|fix|quick|short|brief)\b)|kubernetes|k8s"
    r"|usual(?:ly)?|common(?:ly)?|general(?:ly)?|typical(?:ly)?|difference|example|ein\w{0,2}"
    r"|unterschied|un|une|una|diferencia|exit code|explain how|configure|create|write"
    r"|define|enable|install|set up)\b"
)
"""Words for what is so everywhere. The article of "a likely reason" is none."""
_TERM: Final = expression(
    r"\b[A-Z]\w*[a-z][A-Z]\w*|\b[A-Z]{2,}[a-z]\w*|\b(?:bedeutet|significa|signifie) [A-Z]\w*|\bmean\?"
)
"""Words such as `CrashLoopBackOff`, which are defined and not asked about."""


def asks_for_knowledge(question: str, *, is_trouble: bool) -> bool:
    """Return whether the question is about Kubernetes itself.

    `is_trouble` means that it has words for trouble. Then it must ask about trouble in general: "how do I fix an
    ImagePullBackOff?" does, "explain why everything fails" does not.
    """
    text = folded(question)
    if not _KNOWLEDGE.search(text) or _HERE.search(text):
        return False
    if is_trouble or _TROUBLE.search(text):
        return bool(_GENERAL.search(text) or _TERM.search(question))
    return True
