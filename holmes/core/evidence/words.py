"""A claim as words that the lexicon knows, names, numbers and quotes, cut where one assertion ends.

Pure, and linear in the claim, which is short.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.core.evidence import lexicon, states
from holmes.core.evidence.quantities import QUANTITY, Quantity, count_of, quantity_of, share_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Shape: TypeAlias = Literal["word", "name", "number", "quote", "end"]
Tag = tuple[str, str]

MAX_TOKENS: Final = 200
_QUOTED = re.compile(r"`([^`]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|„([^“”\n]+)[“”]|«([^»\n]+)»|(?<![\w'])'([^'\n]{2,})'(?!\w)")
_COMMAND = re.compile(r"(?:\$ )?(?:kubectl|helm|oc|docker|crictl|curl|grep|journalctl)\s")
_PIECE = re.compile(
    rf"(?P<quantity>{QUANTITY.pattern})"
    r"|(?P<name>[^\W\d_][\w]*(?:[-./:@=+]+\w+)+|\d[\w]*(?:[-./:@=+]+\w+)+|\w*(?:\d\w*[^\W\d]|[^\W\d]\w*\d|_\w)\w*)"
    r"|(?P<elided>[^\W\d_]{1,2}')(?=\w)|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)?)|(?P<end>[;,()|!?]|\s[—–-]\s|→|->|\.(?=\s|$))"  # noqa: RUF001
)
_CAMEL_CASE = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]")
_LONGEST_PHRASE = 4
_LABEL = re.compile(r"\s*\**([^\W\d_][^\d`\"“„«:;,.]{1,40}?)\**:\**\s+(?=\S)")
_OF_LABELS: Final = frozenset({("function", ""), ("noun", "")})
_ELISION = re.compile(r"\b([cdjlmnst]|qu)'(?=\w\w)")
_SHARE_WORDS: Final = frozenset(lexicon.SHARE_WORDS.split())
_ONLY_WORDS: Final = frozenset(lexicon.ONLY_WORDS.split())
_TIMES_SUFFIX = re.compile(r"(?<=\d)[-‑](?=(?:mal|fois|times)\b)")  # noqa: RUF001


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One word, name, number or quote; `tags` are what the lexicon says about it; `end` ends an assertion.

    `parts` are the two numbers of `1 of 3`.
    """

    shape: Shape
    text: str
    tags: frozenset[Tag] = frozenset()
    quantity: Quantity | None = None
    quoted: bool = False
    parts: tuple[Quantity, ...] = ()

    def has(self, category: str) -> bool:
        """Whether the lexicon has it in `category`."""
        return any(each == category for each, _ in self.tags)

    def concept(self, category: str) -> str:
        """What it stands for in `category`; empty when it is not in it."""
        return next((concept for each, concept in sorted(self.tags) if each == category), "")

    @property
    def is_value(self) -> bool:
        """Whether it must stand in the record."""
        return self.shape in ("name", "quote") and not self.has("state")

    @property
    def is_count(self) -> bool:
        """Whether it is a plain number."""
        return self.quantity is not None and self.quantity.dimensions == {"count"} and not self.parts

    @property
    def is_neutral(self) -> bool:
        """Whether it says nothing by itself."""
        return self.has("function") and not self.quoted


def _phrases() -> dict[tuple[str, ...], frozenset[Tag]]:
    found: dict[tuple[str, ...], set[Tag]] = {}

    def add(words: str, category: str, concept: str = "") -> None:
        for phrase in words.split():
            parts = tuple(_ELISION.sub(r"\1'_", phrase).split("_"))
            found.setdefault(parts, set()).add((category, concept))

    add(lexicon.FUNCTION_WORDS, "function")
    add(lexicon.CONJUNCTIONS, "and")
    add(lexicon.NEGATIONS, "not")
    add(lexicon.UNJUDGED, "unjudged")
    add(lexicon.ALL_WORDS, "all")
    add(lexicon.BOTH_WORDS, "both")
    add(lexicon.TOTAL_WORDS, "total")
    add(lexicon.TIMES_WORDS, "times")
    add(lexicon.USES_WORDS, "uses")
    add(lexicon.AGO_WORDS, "ago")
    add(lexicon.YET_WORDS, "yet")
    add(lexicon.OF_WHICH, "of which")
    add(lexicon.NOUNS, "noun")
    add(lexicon.DURATION_WORDS, "duration")
    add(lexicon.DETERMINERS, "none")
    add(lexicon.LINE_WORDS, "line")
    add(lexicon.LAST_WORDS, "last")
    add(lexicon.EXACTLY, "compare", "=")
    for words, sign in ((lexicon.MORE, ">"), (lexicon.LESS, "<"), (lexicon.AT_LEAST, ">="), (lexicon.AT_MOST, "<=")):
        add(words, "compare", sign)
    for kind, words in lexicon.KINDS.items():
        add(words, "kind", kind)
    for keys, words in lexicon.FIELDS.items():
        add(words, "field", keys)
    for state, each in states.STATES.items():
        add(each.words, "state", state)
    for number, words in lexicon.NUMBER_WORDS.items():
        add(words, "number", str(number))
    return {phrase: frozenset(tags) for phrase, tags in found.items()}


_PHRASES: Final = _phrases()


def tags_of(text: str) -> frozenset[Tag]:
    """What the lexicon says about a word or phrase as a whole."""
    return _PHRASES.get(tuple(text.casefold().split()), frozenset())


def assertions_of(statement: str) -> tuple[tuple[Token, ...], ...]:
    """The assertions of a statement: its tokens without what ends each, and without a label like `Evidence:`."""
    label = _LABEL.match(statement)
    if label is not None and not any(token.tags - _OF_LABELS for token in _tokens(label[1])):
        statement = statement[label.end() :]
    parts: list[list[Token]] = [[]]
    for token in _with_shares(list(_with_phrases(list(_tokens(statement))[:MAX_TOKENS]))):
        if token.shape == "end" or (token.has("and") and not token.quoted):
            parts.append([])
        else:
            parts[-1].append(token)
    return tuple(tuple(part) for part in parts if part)


def _tokens(statement: str) -> Iterator[Token]:
    statement = _TIMES_SUFFIX.sub(" ", statement.replace("’", "'"))  # noqa: RUF001
    position = 0
    for match in _QUOTED.finditer(statement):
        yield from _plain_tokens(statement[position : match.start()])
        text = next(filter(None, match.groups())).strip()
        if text and not _COMMAND.match(text):
            yield _quote(text)
        position = match.end()
    yield from _plain_tokens(statement[position:])


def _quote(text: str) -> Token:
    quantity = QUANTITY.fullmatch(text)
    return Token(
        shape="number" if quantity else "quote",
        text=text,
        tags=tags_of(text),
        quantity=quantity_of(quantity) if quantity else None,
        quoted=True,
    )


def _plain_tokens(text: str) -> Iterator[Token]:
    for match in _PIECE.finditer(text):
        if match["quantity"]:
            inner = QUANTITY.match(text, match.start())
            if inner is not None:
                yield Token(shape="number", text=inner[0].strip(), quantity=quantity_of(inner))
        elif match["end"]:
            yield Token(shape="end", text=match["end"])
        elif match["name"]:
            tags = tags_of(match["name"])
            is_compound = (
                match["name"][0].isupper() and match["name"].replace("-", "").isalpha()
            )  # as German makes them
            yield Token(shape="word" if tags or is_compound else "name", text=match["name"], tags=tags)
        else:
            word = match["elided"] or match["word"]
            word = word if tags_of(word) else word.removesuffix("'s")
            tags = tags_of(word)
            is_name = bool(_CAMEL_CASE.search(word)) and not any(each in ("kind", "field") for each, _ in tags)
            yield Token(shape="name" if is_name else "word", text=word, tags=tags)


def _with_phrases(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens, with words that are a phrase of the lexicon as one."""
    position = 0
    while position < len(tokens):
        for length in range(min(_LONGEST_PHRASE, len(tokens) - position), 1, -1):
            run = tokens[position : position + length]
            if any(each.shape not in ("word", "name") or each.quoted for each in run):
                continue
            tags = _PHRASES.get(tuple(each.text.casefold() for each in run))
            if tags:
                yield Token(shape="word", text=" ".join(each.text for each in run), tags=tags)
                position += length
                break
        else:
            yield _as_number(tokens[position], tokens[position + 1 : position + 3])
            position += 1


def _with_shares(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens, with `1 of 3` and `only 2` as one."""
    position = 0
    while position < len(tokens):
        token = tokens[position]
        end = position + 1
        while end < min(len(tokens), position + 4) and tokens[end].text.casefold() in _SHARE_WORDS:
            end += 1
        other = tokens[end] if position + 1 < end < len(tokens) else None
        if other is not None and other.has("both"):
            other = Token(shape="number", text="2", quantity=count_of(2))
        if other is None and token.is_count and position + 3 < len(tokens) and tokens[position + 1].has("kind"):
            middle, last = tokens[position + 2], tokens[position + 3]
            if middle.text.casefold() in ("of", "von", "sur", "de") and last.is_count:
                yield _share(token, last)
                yield tokens[position + 1]
                position += 4
                continue
        joined = _joined_time(tokens[position : position + 3])
        follows = tokens[position + 1 : position + 2]
        if token.text.casefold() in _ONLY_WORDS and any(each.shape == "number" for each in follows):
            yield replace(token, tags=frozenset({("compare", "=")}))
        elif token.quantity and other and other.quantity and token.is_count and other.is_count:
            yield _share(token, other)
            position = end
        elif joined is not None:
            yield joined
            position += 1 if tokens[position + 1].shape == "number" else 2
        else:
            yield token
        position += 1


def _share(part: Token, whole: Token) -> Token:
    parts = tuple(each.quantity for each in (part, whole) if each.quantity is not None)
    text = f"{part.text} of {whole.text}"
    return Token(shape="number", text=text, quantity=share_of(parts[0], parts[1]), parts=parts)


def _joined_time(tokens: Sequence[Token]) -> Token | None:
    """`3 hours and 17 minutes` as one time."""
    parts = [token for token in tokens if not token.has("and")][:2]
    first, second = (token.quantity for token in parts) if len(parts) == 2 else (None, None)
    if first is None or second is None or not parts[0].shape == parts[1].shape == "number":
        return None
    whole, rest = first.number("time"), second.number("time")
    if whole is None or rest is None or rest >= whole or len(first.dimensions | second.dimensions) > 1:
        return None
    quantity = Quantity(text=f"{first.text} {second.text}", meanings=frozenset({("time", whole + rest)}))
    return Token(shape="number", text=quantity.text, quantity=quantity)


def _as_number(token: Token, following: Sequence[Token]) -> Token:
    """`three` as a number; `one` only before what can be counted."""
    is_counting = any(each.has("kind") or each.has("field") for each in following)
    is_counting = is_counting or any(
        each.text.casefold() in ("of", "der", "von", "des", "de") for each in following[:1]
    )
    if token.text.casefold() in ("one", "un", "uno", "einer", "eine", "ein") and not is_counting:
        return replace(token, tags=frozenset({("function", "")}))
    if token.shape == "word" and token.has("number"):
        return Token(shape="number", text=token.text, quantity=count_of(int(token.concept("number"))))
    return token
