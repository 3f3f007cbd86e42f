"""Parses a question: namespace, names, kinds, symptoms, time, and the text to search for in logs.

The parser has no access to the cluster. A word that looks like a name is treated as a name. A name is `certain` if it
cannot be an ordinary word. Only the beginning and the end of a very long text are read. Parsing never fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.triage.words import KIND_BY_WORD, NEVER_NAMES, NOT_A_NAMESPACE, ONLY_BEFORE_SLASH, SYMPTOMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_HEAD_CHARACTERS: Final = 4_000
MAX_TAIL_CHARACTERS: Final = 2_000
_MOST_NAMES = 12
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,280}(?:…|\*)?")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_NUMBERS = re.compile(r"[\d.:/-]+[a-z%]{0,8}")
_QUOTED = re.compile(r"`([^`\n]{1,200})`|\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”|(?<!\w)'([^'\n]{1,200})'(?!\w)")
_FLAG = re.compile(r"(?<!\S)(?:-n|--namespace)[= ] ?([a-z0-9][a-z0-9-]{0,62})")
_WHOLE = re.compile(
    r"\b(?:all|every|any|each|across) (?:the )?(?:namespaces?|clusters?)\b|\b(?:whole|entire) cluster\b"
    r"|\bcluster[ -]?wide\b|(?<!\S)(?:-A|--all-namespaces)(?!\S)",
)
_AGE = re.compile(
    r"\b(?:last|past|since|previous|within)\s{1,3}(?:the last )?(\d{1,5}|an?|few)?\s{0,3}"
    r"(minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)\b"
)
_SEARCHED = re.compile(
    r"\b(?:containing|contains?|matching|match(?:es)?|mentioning|mentions?|including|with the (?:words?|text|string)|"
    r"(?:grep|search)(?:ping|ing)?(?: for)?)\s{1,3}(?:the (?:words?|text|string)\s{1,3})?"
    r"(?:['\"`“]([^'\"`”\n]{1,200})['\"`”]|([\w.:/-]{2,80}))",
    re.IGNORECASE,
)
_TROUBLE_WORDS: Final = (
    "error",
    "errors",
    "exception",
    "exceptions",
    "warning",
    "warnings",
    "fatal",
    "panic",
    "failure",
)
_TROUBLE: Final = "error|exception|fatal|panic|fail|critical|warn"
_PLAIN_AGE: Final = {"m": "m", "h": "h", "d": "d", "w": "d"}
_POINTING: Final = frozenset({"it", "its", "that", "this", "them", "their", "same", "those", "these"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A name in the question.

    `certain` is false for a word that may not be a name. `prefix` is true for a shortened name.
    """

    name: str
    kind: str = ""
    namespace: str = ""
    certain: bool = True
    prefix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A parsed question.

    `namespace` is `*` for the whole cluster, and is empty if the question does not name a namespace.
    `perhaps_namespace` is a word that may be a namespace. `kinds` is in the order of the question. `symptoms` contains
    names from `words.SYMPTOMS`. `searched` is the text to search for in logs. `since` is an age such as `1h`.
    `points_back` is true if the question refers to an earlier message.
    """

    text: str
    words: tuple[str, ...]
    namespace: str = ""
    perhaps_namespace: str = ""
    names: tuple[Named, ...] = ()
    kinds: tuple[str, ...] = ()
    symptoms: frozenset[str] = frozenset()
    quoted: tuple[str, ...] = ()
    searched: str = ""
    since: str = ""
    points_back: bool = False

    def says(self, *words: str) -> bool:
        """Return whether one of `words` is in the question."""
        return any(word in self.words for word in words)

    def has(self, *phrases: str) -> bool:
        """Return whether one of `phrases` is in the question. Phrases are in lower case."""
        return any(phrase in self.text for phrase in phrases)


def parse_question(text: str) -> Question:
    shown = _both_ends(text).replace("\u2019", "'").replace("...", "…")
    lowered = shown.lower()
    tokens = [_plain(match[0]) for match in _WORD.finditer(lowered)]
    tokens = [token for token in tokens if token]
    words = tuple(token.rstrip("…*") for token in tokens)
    quoted = tuple(next(filter(None, match.groups())).strip() for match in _QUOTED.finditer(shown))
    paths = tuple(_paths(tokens))
    namespace = _certain_namespace(shown, words, paths)
    perhaps = "" if namespace else _perhaps_namespace(words)
    named = _distinct((*paths, *_beside_kinds(tokens), *_quoted_names(quoted), *_looking_like_names(tokens)))
    searched = _searched(shown, quoted, words, named)
    taken = {namespace, searched.lower()}
    names = tuple(each for each in named if each.name not in taken or each.kind)[:_MOST_NAMES]
    mentioned = dict.fromkeys(KIND_BY_WORD[w].kind for w in words if w in KIND_BY_WORD and w not in ONLY_BEFORE_SLASH)
    return Question(
        text=" ".join(lowered.split()),
        words=words,
        namespace=namespace,
        perhaps_namespace=perhaps,
        names=names,
        kinds=tuple(mentioned),
        symptoms=frozenset(symptom.name for symptom in SYMPTOMS if not set(symptom.said).isdisjoint(words)),
        quoted=quoted,
        searched=re.escape(searched) if searched else _TROUBLE if set(_TROUBLE_WORDS) & set(words) else "",
        since=_since(lowered),
        points_back=not any(each.certain for each in names) and not _POINTING.isdisjoint(words),
    )


def _both_ends(text: str) -> str:
    if len(text) <= MAX_HEAD_CHARACTERS + MAX_TAIL_CHARACTERS:
        return text
    return f"{text[:MAX_HEAD_CHARACTERS]}\n{text[-MAX_TAIL_CHARACTERS:]}"


def _plain(token: str) -> str:
    """Remove punctuation from the end of a word."""
    return token.rstrip("._/-") if not token.endswith(("…", "*")) else token


def _is_name(word: str) -> bool:
    """Return whether `word` is a valid object name and not an ordinary word, number or time."""
    return (
        len(word) >= 2
        and _LABEL.fullmatch(word) is not None
        and word not in NEVER_NAMES
        and _NUMBERS.fullmatch(word) is None
        and not all(part in NEVER_NAMES for part in re.split(r"[-.]", word))
    )


def _paths(tokens: Iterable[str]) -> Iterator[Named]:
    """Yield names in paths: `deployment/checkout`, `shop/checkout`, `shop/deployment/checkout`, `payments.shop.svc`."""
    for token in tokens:
        parts = token.rstrip("…*").split("/")
        cut = token.endswith(("…", "*"))
        if len(parts) == 3 and parts[1] in KIND_BY_WORD and _LABEL.fullmatch(parts[2]):
            yield Named(name=parts[2], kind=KIND_BY_WORD[parts[1]].kind, namespace=parts[0], prefix=cut)
        elif len(parts) == 2 and _LABEL.fullmatch(parts[1]):
            kind = KIND_BY_WORD.get(parts[0].partition(".")[0])
            if kind is not None:
                yield Named(name=parts[1], kind=kind.kind, prefix=cut)
            elif "." not in parts[0] and _is_name(parts[0]) and _is_name(parts[1]):
                yield Named(name=parts[1], namespace=parts[0], prefix=cut)
        elif len(parts) == 1 and ".svc" in token:
            labels = token.split(".")
            if len(labels) >= 3 and labels[2] == "svc":
                yield Named(name=labels[0], kind="Service", namespace=labels[1])


def _beside_kinds(tokens: list[str]) -> Iterator[Named]:
    """Yield names next to a kind: `deployment checkout`, `deployment named checkout`, `the checkout deployment`."""
    plain = [token for token in tokens if token not in ("named", "called", "the")]
    for left, right in pairwise(plain):
        kind = _kind_word(left)
        if kind and kind != "Namespace" and _is_name(right.rstrip("…*")):
            yield Named(name=right.rstrip("…*"), kind=kind, prefix=right.endswith(("…", "*")))
        kind = _kind_word(right)
        if kind and kind != "Namespace" and _is_name(left.rstrip("…*")) and "/" not in left:
            yield Named(name=left.rstrip("…*"), kind=kind, prefix=left.endswith(("…", "*")))


def _kind_word(word: str) -> str:
    return KIND_BY_WORD[word].kind if word in KIND_BY_WORD and word not in ONLY_BEFORE_SLASH else ""


def _quoted_names(quoted: Iterable[str]) -> Iterator[Named]:
    for text in quoted:
        word = text.lower()
        if _LABEL.fullmatch(word) and _NUMBERS.fullmatch(word) is None and word not in NEVER_NAMES:
            yield Named(name=word)


def _looking_like_names(tokens: Iterable[str]) -> Iterator[Named]:
    """Yield words that look like names.

    `checkout-7d9f4c6b5-x2x4q` is certain to be a name, but `checkout` is not.
    """
    for token in tokens:
        word = token.rstrip("…*")
        if "/" not in word and ".svc" not in word and _is_name(word):
            made = "-" in word or any(sign.isdigit() for sign in word)
            yield Named(name=word, certain=made, prefix=word != token)


def _distinct(names: Iterable[Named]) -> tuple[Named, ...]:
    """Remove repeated names, and keep the first form of each name. Names that are certain come first."""
    kept: dict[str, Named] = {}
    for each in names:
        kept.setdefault(each.name, each)
    return tuple(sorted(kept.values(), key=lambda each: not each.certain))


def _certain_namespace(shown: str, words: tuple[str, ...], paths: tuple[Named, ...]) -> str:
    flag = _FLAG.search(shown)
    if flag is not None:
        return flag[1]
    if _WHOLE.search(shown):
        return "*"
    for left, right in pairwise(words):
        if left in ("namespace", "ns") and _may_be_namespace(right):
            return right
        if right in ("namespace", "ns") and _may_be_namespace(left):
            return left
    return next((each.namespace for each in paths if each.namespace), "")


def _perhaps_namespace(words: tuple[str, ...]) -> str:
    pairs = [(left, right) for left, right in pairwise(word for word in words if word != "the")]
    return next((right for left, right in pairs if left in ("in", "inside") and _may_be_namespace(right)), "")


def _may_be_namespace(word: str) -> bool:
    if word in NOT_A_NAMESPACE or "." in word or "/" in word:
        return False
    # A word with a hyphen, such as `kube-system`, is always a name.
    made = "-" in word and _LABEL.fullmatch(word) is not None and _NUMBERS.fullmatch(word) is None
    return made or _is_name(word) or word in NEVER_NAMES


def _searched(shown: str, quoted: tuple[str, ...], words: tuple[str, ...], names: tuple[Named, ...]) -> str:
    """Return the text to search for in a log.

    The text after "containing" is preferred over a quoted text that is not a name. The result is empty if the question
    contains neither.
    """
    match = _SEARCHED.search(shown)
    if match is not None and (match[1] or match[2].lower() not in ("in", "the", "for", "logs", "log")):
        return match[1] or match[2].rstrip(".:/-")
    known = {each.name for each in names}
    return next((text for text in quoted if text.lower() not in known and "log" in " ".join(words)), "")


def _since(lowered: str) -> str:
    match = _AGE.search(lowered)
    if match is None:
        return ""
    unit = match[2][0]
    number = {"a": 1, "an": 1, None: 1, "few": 3}.get(match[1]) or int(match[1] or 1)
    return f"{number * (7 if unit == 'w' else 1)}{_PLAIN_AGE[unit]}"
