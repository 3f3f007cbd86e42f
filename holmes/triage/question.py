"""Parses a question without access to the cluster: words, phrases, times, numbers, labels, addresses and quoted text.

`subjects.py` then finds out which of the words are names of objects. Only the beginning and the end of a very long text
are read. Parsing never fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from holmes.triage.bounds import comparisons_in, with_bounds_first
from holmes.triage.complaints import about_trouble, acts_told, asides, complains
from holmes.triage.homographs import without_homographs
from holmes.triage.inclusions import with_exceptions, without_inclusions
from holmes.triage.occasions import is_occasion
from holmes.triage.pasted_texts import asked_text
from holmes.triage.periods import period_of
from holmes.triage.points import length_expression, seconds_of
from holmes.triage.spoken_times import with_written_times
from holmes.triage.tags import without_tag
from holmes.triage.told_values import PREFIXED, node_ports, versions_in
from holmes.triage.vocabulary import folded, language_of, sightings, symptoms_in, vocabulary, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.triage.bounds import Comparison
    from holmes.triage.periods import Period
    from holmes.triage.vocabulary import Sighting

_URL: Final = expression(r"\b[a-z][a-z0-9+.-]{1,12}://[^\s'\"<>`)]{1,400}")
_ADDRESS: Final = expression(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3}){3})(?::(\d{1,5}))?(?![\w.])")
_QUOTED: Final = expression(
    r"`([^`\n]{1,200})`|\"([^\"\n]{1,200})\"|[“„]([^“”\n]{1,200})[“”]|«\s?([^«»\n]{1,200}?)\s?»|»([^«»\n]{1,200})«|\*([\w./-]{1,200})\*|(?<!\w)'([^'\n]{1,200})'(?!\w)"
)
_CLAUSE_ENDS: Final = expression(
    r"\s(?=(?:before|after|while|because|since|so|as|when|bevor|wenn|weil|damit|antes de que|porque|avant que"
    r"|parce que)"
    r"\s(?:i|we|you|they|he|she|ich|wir|ihr|er|yo|je|nous|on|vous)\s)"
    r"|\s(?=(?:whether|ob|(?<=know )if|(?<=me )if|(?<=check )if|(?<=saber )si|(?<=dime )si|(?<=savoir )si"
    r"|(?<=moi )si)\s)"
    r"|[,;:!?.()\u00a1\u00bf](?=\s|$)|(?:(?<=\s)|^)[(\u00a1\u00bf]|\s(?:[-\u2013\u2014]|&)\s"
)
_LIST_MARK: Final = expression(r"(?:^|(?<=[\s:;,.?!]))\(?\d{1,2}\)(?=\s+[^\W\d])")
_STATUS_VALUE: Final = expression(r"[45]\d\d")
_TICKET: Final = expression(
    r"(?:(?i:\b(?:ticket|case|issue|change|incident|jira|incidencia))\s+|^\W*|[(\[]\s*)(?P<id>[A-Z]{2,10}-\d{2,7})"
    r"(?=\s*[:)\],;]|\s+[-\u2013\u2014]\s)|(?i:\b(?:ticket|jira))\s+(?P<named>[A-Z]{2,10}-\d{2,7})\b",
    re.MULTILINE,
)
"""The number of a ticket that is set off: "SHELL-12: why", "(CHG-8)". In "is WORKER-12 ok", it is a name."""
_NOT_GERMAN: Final = expression(r"\bhier\b")
_FLAG: Final = expression(r"(?<!\S)(?:-n|--namespace)[= ] ?([a-z0-9][a-z0-9-]{0,62})")
_WHOLE: Final = expression(
    r"\b(?:all|every|any|each|across|alle[nr]?|allen|todos los|toutes? les|tous les) (?:the )?"
    r"(?:namespaces?|clusters?|namensraume[n]?|espacios de nombres|espaces de noms)\b"
    r"|\b(?:whole|entire|ganzen?|gesamten?|todo el|tout le) cluster\b|\bcluster[ -]?wide\b"
    r"|\b(?:any|some|every)where (?:in|on) (?:the|our|this) cluster\b|\birgendwo im cluster\b"
    r"|\ben (?:algun lado|alguna parte) del cluster\b|\bquelque part (?:dans|sur) le cluster\b"
    r"|(?<!\S)(?:-a|--all-namespaces)(?!\S)"
)
_LABEL: Final = expression(
    r"(?<![\w=/.-])((?:[a-z0-9][a-z0-9.-]*/)?[a-z0-9][\w.-]*)\s?(!?={1,2})\s?[\"']?([\w][\w.:/-]*|)(?![\w=])"
)
_OLDER: Final = r"older|alter|mas antigu\w+|mas viej\w+|plus ancien\w*|plus vieux"
_OF_AGE: Final = expression(
    rf"\b(?P<what>{_OLDER}|newer|younger|more recent|junger|mas recient\w+|plus recent\w*)\s+(?:than|als|que|de)\s+"
    rf"{length_expression()}"
)
_AGED: Final = expression(
    rf"\b(?P<what>more|less|fewer|mehr|weniger|mas|menos|plus|moins)\s+(?:than|als|de|que)\s+{length_expression()}"
    r"\s+(?:ago|old|alt|de antiguedad)\b"
)
_LIVED: Final = expression(
    r"\b(?:have|has|having|are|is|been around for|haben|sind|ist|existieren seit|tienen|tiene|con|llevan|ont|a|ayant"
    rf"|avec|existent depuis)\s+(?P<what>more|less|fewer|mehr|weniger|mas|menos|plus|moins)\s+(?:than|als|de|que)\s+"
    rf"{length_expression()}(?!\w)"
)
_VALUED: Final = expression(
    r"\b(?:annotation|label|anotacion|etiqueta|etiquette)s?\s+([a-z0-9][a-z0-9./_-]*)\s+(?:is|are|set to"
    r"|equals|equal to|of|with value|ist|auf|mit wert|gleich|es|a|en|con valor|vaut|est|sur|avec la valeur)"
    r"\s+[\"'`]?([\w.:/-]*\w)"
)
_INFINITIVE: Final = expression(r"\w{3,}[aei]rse")
"""A Spanish verb, not a key: "puede label conectarse a books"."""
_FULL_OF: Final = frozenset({("full", "of"), ("voll", "von"), ("voll", "mit"), ("lleno", "de"), ("plein", "de")})
_SLASHED: Final = expression(r"(?<![\w./:=-])[a-z]+(?:/[a-z]+){1,3}(?![\w./:=-])")
_CONTRACTED: Final = expression(
    r"\b(is|are|was|were|do|does|did|has|have|had|ca|wo|would|should|could|must|need)nt\b(?![-./])"
    r"(?! (?:give|show|list|print|tell|bother|worry|care|know|need|want|think|mind|forget|see|get|understand)\b)"
)
"""Negations without their apostrophe. "Can't" is written for "cannot", so "ca" is one of the verbs."""
_SHORT: Final = expression(r"(?<![\w/])w/(o)?(?=\s)")
_ERROR_TEXT: Final = expression(
    r"(?<![`\"'\w])(?<!have )(?<!has )(?<!had )(?<!with )no (?:space left(?: on (?:the )?device)?"
    r"|such (?:file or directory|file|host|key|bucket|table|image)"
    r"|route to host|healthy (?:upstream|backend)s?|live upstreams|endpoints available|available servers?)\b(?![`\"'])"
)
"""Texts of errors that begin with a negation, which negates nothing in a question about lines or times."""
_WHY: Final = expression(r"(?i)\b(?:why|warum|wieso|pourquoi|por qu[eé])\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTerm:
    """A condition `key=value` or `key!=value` on a label or an annotation."""

    key: str
    value: str
    negated: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels match the condition."""
        return (self.key in labels and self.value in ("", labels[self.key])) != self.negated

    def __str__(self) -> str:
        return f"{self.key}{'!=' if self.negated else '='}{self.value}"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A parsed question.

    `written` is the text as read, `text` its folded form, see `vocabulary.folded`, and `spoken` that form without
    quoted sentences. `words` are folded, too. `quoted` contains the text in quotes. `older_seconds` and `newer_seconds`
    bound the age of objects. `period` is the time that the question is about. `complains` means that it states trouble,
    see `complaints.py`. `breaks` contains the positions of words after a punctuation mark. `corrections` contains
    misspelled words with what they were read as. `includes` means that no state is left out, see `inclusions.py`.
    """

    text: str
    words: tuple[str, ...]
    found: tuple[Sighting, ...]
    quoted: tuple[str, ...] = ()
    namespace_flag: str = ""
    whole_cluster: bool = False
    labels: tuple[LabelTerm, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    older_seconds: float = 0.0
    newer_seconds: float = 0.0
    period: Period | None = None
    addresses: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    symptoms: frozenset[str] = frozenset()
    complains: bool = False
    written: str = ""
    spoken: str = ""
    breaks: frozenset[int] = frozenset()
    corrections: tuple[tuple[str, str], ...] = ()
    includes: bool = False

    def clause(self, index: int) -> range:
        """Return the positions of the words between the punctuation marks around a word."""
        first = max((each for each in self.breaks if each <= index), default=0)
        end = min((each for each in self.breaks if each > index), default=len(self.words))
        return range(first, end)

    def asks(self, *concepts: str) -> bool:
        """Return whether the question contains a phrase of one of the concepts."""
        return any(each.sense == "concept" and each.name in concepts for each in self.found)

    @cached_property
    def data(self) -> tuple[str, ...]:
        """The addresses, and the versions if the question is about the kubelet or the version of nodes."""
        return (*self.addresses, *versions_in(self.words, self.text, nodes="Node" in self.kinds))

    @cached_property
    def prefixes(self) -> tuple[str, ...]:
        """The beginnings that names must have: `kube-` in "namespaces that start with kube-"."""
        return tuple(match[1].rstrip("*") for match in PREFIXED.finditer(self.text))

    @cached_property
    def prefix_words(self) -> frozenset[str]:
        """The words of the conditions on the beginnings of names."""
        return frozenset(word for match in PREFIXED.finditer(self.text) for word in words_of(match[0]))

    @property
    def wants_reason(self) -> bool:
        """Whether the question states trouble, or asks for a reason."""
        return self.complains or self.asks("why", "trouble")

    @property
    def wants_cause(self) -> bool:
        """Whether the question is about trouble, or mentions a symptom."""
        return self.wants_reason or bool(self.symptoms)

    @property
    def found_word(self) -> bool:
        """Whether the question speaks of workloads or containers in general."""
        return any(each.sense == "word" for each in self.found)

    @property
    def states(self) -> tuple[str, ...]:
        """The states in the question, for example `pending`, in order."""
        return tuple(dict.fromkeys(each.name for each in self.found if each.sense == "state"))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds in the question, in order."""
        return tuple(dict.fromkeys(each.name for each in self.found if each.sense == "kind"))

    @cached_property
    def quoted_names(self) -> frozenset[str]:
        """The quoted text that can be a name. Names of objects are in lower case: «RAS» cites a person."""
        return frozenset(each.lower() for each in self.quoted if each == each.lower() or f"`{each}`" in self.written)

    @cached_property
    def tickets(self) -> frozenset[str]:
        """The numbers of tickets and changes, which name no object."""
        return frozenset((each["id"] or each["named"]).lower() for each in _TICKET.finditer(self.written))

    def lacks(self, what: str) -> bool:
        """Return whether the question asks for objects without `what`, for example without limits."""
        said = vocabulary().absences[what]
        negations = [each.last for each in self.found if each.sense == "concept" and each.name == "negation"]
        return any(word in said for last in negations for word in self.words[last + 1 : last + 5])


def _plain_text(shown: str) -> tuple[str, bool]:
    """Return a question in its folded form, without the states that it includes, and whether it includes any."""
    lowered = " ".join(folded(shown.replace("...", "…")).split())
    lowered = without_tag(lowered)
    lowered = _SHORT.sub(lambda match: "without" if match[1] else "with", lowered)
    if language_of(words_of(lowered)) == "en":  # French `dont` is a pronoun
        lowered = _CONTRACTED.sub(r"\1n't", lowered)
    lowered, includes = without_inclusions(with_exceptions(with_bounds_first(lowered)))
    return _SLASHED.sub(_apart, lowered), includes


def parse_question(text: str) -> Question:
    text = _LIST_MARK.sub(" ", text)
    shown = with_written_times(asked_text(text))
    shown = shown if _WHY.search(shown) else _ERROR_TEXT.sub(r"`\g<0>`", shown)
    lowered, includes = _plain_text(shown)
    plain = _URL.sub(" ", lowered)
    words, breaks = words_of(plain), _breaks(plain)
    flag = _FLAG.search(lowered)
    age = _OF_AGE.search(lowered) or _AGED.search(lowered) or _LIVED.search(lowered)
    age = age if age is not None and age["unit"] else None
    old = age is not None and re.fullmatch(rf"{_OLDER}|more|mehr|mas|plus", age["what"]) is not None
    age_seconds = seconds_of(age["number"] or "", age["unit"]) if age is not None else 0.0
    dated = about_trouble(lowered)
    spoken = _without(words, [words_of(each) for each in (*asides(lowered), *acts_told(lowered))])
    period = period_of(_german(dated) if language_of(words) == "de" else dated)
    found = without_homographs(words, _seen(_spoken(words, shown), spoken), breaks, dated=period is not None)
    period = period if period is not None and not is_occasion(period, words, found) else None
    kinds = {each.name for each in found}
    return Question(
        text=lowered,
        words=words,
        found=found,
        quoted=tuple(next(filter(None, match.groups())).strip() for match in _QUOTED.finditer(shown)),
        namespace_flag=flag[1] if flag else "",
        whole_cluster=_WHOLE.search(lowered) is not None,
        labels=tuple(_labels(plain)),
        comparisons=tuple(comparisons_in(lowered if age is None else lowered.replace(age[0], " "))),
        older_seconds=age_seconds if old else 0.0,
        newer_seconds=0.0 if old else age_seconds,
        period=period,
        addresses=tuple(
            dict.fromkeys(
                (
                    *(match[0] for match in _ADDRESS.finditer(lowered)),
                    *node_ports(plain, about="Service" in kinds),
                )
            )
        ),
        hosts=tuple(dict.fromkeys(_host(match[0]) for match in _URL.finditer(lowered))),
        includes=includes,
        symptoms=symptoms_in(
            word for word, after in zip(spoken, (*spoken[1:], ""), strict=False) if not _fills(word, after)
        ),
        complains=complains(lowered),
        written=shown,
        spoken=_QUOTED.sub(_without_sentence, lowered),
        breaks=breaks,
    )


def _apart(match: re.Match[str]) -> str:
    """Write words of the vocabulary apart that a slash joins: "requests/limits", but not `deployment/web`."""
    parts = match[0].split("/")
    known = all(vocabulary().is_ordinary(each) or sightings((each,)) or symptoms_in((each,)) for each in parts)
    path = any(each.sense == "kind" for each in sightings(parts[:1])) and not vocabulary().is_plural(parts[0])
    kinds = all(any(each.sense == "kind" for each in sightings((part,))) for part in parts)
    return " and ".join(parts) if known and (kinds or not path) else match[0]


def _fills(word: str, after: str) -> bool:
    """Return whether a word only tells that there is much: "the log is full of errors"."""
    return (word, after) in _FULL_OF or word == "voller"


def _german(text: str) -> str:
    """Return German text without words that mean a time in other languages: `hier` is French for yesterday."""
    return _NOT_GERMAN.sub("da", text)


def _breaks(text: str) -> frozenset[int]:
    clauses = [words_of(each) for each in _CLAUSE_ENDS.split(text)]
    return frozenset(sum(map(len, clauses[:index])) for index in range(1, len(clauses)))


def _without_sentence(match: re.Match[str]) -> str:
    """Blank a quoted sentence. A quoted name stays."""
    return match[0] if " " not in match[0] else " " * len(match[0])


def _spoken(words: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Return the words with quoted sentences blanked: a quoted log line asks for nothing."""
    quoted = (next(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    phrases = [words_of(" ".join(folded(each).split())) for each in quoted]
    return _without(words, [each for each in phrases if 1 < len(each) < len(words) - 1])


def _seen(words: tuple[str, ...], spoken: tuple[str, ...]) -> tuple[Sighting, ...]:
    """Return the sightings, without the states in what is only told beside the trouble."""
    return tuple(each for each in sightings(words) if each.sense != "state" or spoken[each.first])


def _without(words: tuple[str, ...], phrases: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the words with the phrases blanked."""
    kept = list(words)
    for phrase in phrases:
        for start in range(len(words) - len(phrase) + 1):
            if words[start : start + len(phrase)] == phrase:
                kept[start : start + len(phrase)] = [""] * len(phrase)
    return tuple(kept)


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]


def _labels(text: str) -> Iterator[LabelTerm]:
    for match in _LABEL.finditer(text):
        status = _STATUS_VALUE.fullmatch(match[3]) is not None  # "shop.example.com = 503"
        if not match[1].startswith("-") and not status:
            yield LabelTerm(key=match[1], value=match[3].rstrip(".:/-"), negated=match[2].startswith("!"))
    for match in _VALUED.finditer(text):  # "the annotation backup is true"
        if not _INFINITIVE.fullmatch(match[1]):
            yield LabelTerm(key=match[1], value=match[2])


def states_health(text: str) -> bool:
    """Return whether a statement only says that something is well: "catalog is healthy"."""
    question = parse_question(text)
    good = question.asks("health") or set(question.states) & {"ready", "running"}
    other = set(question.states) - {"ready", "running"} or question.comparisons or question.period is not None
    concepts = ("trouble", "negation", "either", "excluding", "logs", "count", "changes", "resources", "usage")
    return bool(good) and not other and not question.asks(*concepts)
