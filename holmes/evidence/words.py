"""Splits a claim into assertions and tokens: words of the lexicon, names, numbers and quotes.

`lexicon.yaml` contains the words that a checked claim may use. The file is loaded when the first claim is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from holmes.evidence.quantities import QUANTITY, Quantity, count_of, quantity_of, share_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


Tag: TypeAlias = tuple[str, str]
"""A category of words, and the meaning of a word in this category. The meaning is empty if the category has no
meanings."""

_FILE: Final = Path(__file__).with_name("lexicon.yaml")
_PRONOUNS: Final = ("c", "d", "j", "l", "m", "n", "s", "t", "qu")
Shape: TypeAlias = Literal["word", "name", "number", "quote", "end"]
_MAX_TOKENS: Final = 200
_QUOTED = expression(r"`([^`]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|„([^“”\n]+)[“”]|«([^»\n]+)»|(?<![\w'])'([^'\n]{2,})'(?!\w)")
_COMMAND = expression(r"(?:\$ )?(?:kubectl|helm|oc|docker|crictl|curl|grep|journalctl)\s")
_PIECE = expression(
    rf"(?P<quantity>{QUANTITY.pattern})"
    r"|(?P<name>[^\W\d_][\w]*(?:[-./:@=+]+\w+)+|\d[\w]*(?:[-./:@=+]+\w+)+|\w*(?:\d\w*[^\W\d]|[^\W\d]\w*\d|_\w)\w*)"
    r"|(?P<elided>[^\W\d_]{1,2}')(?=\w)|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)?)|(?P<end>[;,()|!?]|:(?=\s|$)|\s[—–-]\s|→|->|\.(?=\s|$))"  # noqa: RUF001
)
_CAMEL_CASE = expression(r"[a-z][A-Z]|[A-Z]{2,}[a-z]")
_LONGEST_PHRASE = 4
_LABEL = expression(r"\s*\**([^\W\d_][^\d`\"“„«:;,.]{1,40}?)\**:\**\s+(?=\S)")
_OF_LABELS: Final = frozenset({("neutral", ""), ("noun", "")})
_NEW: Final = frozenset({";", ".", "!", "?"})
_TIMES_SUFFIX = expression(r"(?<=\d)[-‑](?=(?:mal|fois|times)\b)")  # noqa: RUF001


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The evidence that proves a state in a record. `lexicon.yaml` describes the attributes."""

    words: str
    statuses: str = ""
    reasons: str = ""
    opposed: str = ""
    conditions: str = ""
    ratios: str = ""
    above_zero: str = ""
    negative: bool = False
    soft: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The meanings of words and phrases. The key of a phrase is a tuple of its words."""

    phrases: Mapping[tuple[str, ...], frozenset[Tag]]
    states: Mapping[str, State]
    lists: Mapping[str, frozenset[str]]
    columns: Mapping[str, tuple[str, ...]]

    def tags(self, words: Sequence[str]) -> frozenset[Tag]:
        """Return the tags of a word or phrase. The result is empty for an unknown word."""
        return self.phrases.get(tuple(word.casefold() for word in words), frozenset())


@cache
def words_of(category: str) -> frozenset[str]:
    """Return all words of a category or a plain list. The words of a phrase are separated by single spaces."""
    if category in lexicon().lists:
        return lexicon().lists[category]
    entries = lexicon().phrases.items()
    return frozenset(" ".join(phrase) for phrase, tags in entries if any(each == category for each, _ in tags))


@cache
def lexicon() -> Lexicon:
    import yaml

    raw = yaml.load(_FILE.read_text(encoding="utf-8"), yaml.CSafeLoader)
    states = {name: State(**entry) for name, entry in raw.pop("state").items()}
    columns = {kind: tuple(keys.split()) for kind, keys in raw.pop("columns").items()}
    lists = {
        name: frozenset(word.replace("_", " ") for word in words.split()) for name, words in raw.pop("list").items()
    }
    phrases: dict[tuple[str, ...], set[Tag]] = {}
    for tag, words in _entries(raw, states):
        for phrase in words.split():
            phrases.setdefault(tuple(_parts(phrase)), set()).add(tag)
    return Lexicon(
        phrases={phrase: frozenset(tags) for phrase, tags in phrases.items()},
        states=states,
        lists=lists,
        columns=columns,
    )


def _entries(raw: Mapping[str, str | Mapping[str, str]], states: Mapping[str, State]) -> Iterator[tuple[Tag, str]]:
    for category, entry in raw.items():
        if isinstance(entry, str):
            yield (category, ""), entry
        else:
            yield from (((category, concept), words) for concept, words in entry.items())
    yield from ((("state", name), state.words) for name, state in states.items())


def _parts(phrase: str) -> Iterator[str]:
    """Split a phrase into words. An elided article becomes a separate word, as in claims."""
    if "'" not in phrase:
        yield from phrase.split("_")
        return
    for part in phrase.split("_"):
        start, sign, rest = part.partition("'")
        if sign and rest and start in _PRONOUNS:
            yield f"{start}'"
            yield rest
        else:
            yield part


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word, name, number or quote.

    `tags` come from the lexicon. A token of the shape `end` ends an assertion. `parts` are the two numbers of `1 of 3`.
    """

    shape: Shape
    text: str
    tags: frozenset[Tag] = frozenset()
    quantity: Quantity | None = None
    quoted: bool = False
    parts: tuple[Quantity, ...] = ()

    def has(self, category: str) -> bool:
        """Return whether the lexicon lists the token in `category`."""
        return any(each == category for each, _ in self.tags)

    def concept(self, category: str) -> str:
        """Return the meaning of the token in `category`, or an empty string if the token is not in the category."""
        return next((concept for each, concept in sorted(self.tags) if each == category), "")

    @property
    def is_value(self) -> bool:
        """Whether the record must contain the token."""
        return self.shape in ("name", "quote") and not self.has("state")

    @property
    def is_count(self) -> bool:
        """Whether the token is a plain number."""
        return self.quantity is not None and self.quantity.dimensions == {"count"} and not self.parts

    @property
    def is_neutral(self) -> bool:
        """Whether the token has no independent meaning."""
        return (self.has("neutral") or self.has("relation")) and not self.quoted


def said(tokens: Iterable[Token], category: str) -> Token | None:
    """Return the first unquoted token in `category`."""
    return next((token for token in tokens if token.has(category) and not token.quoted), None)


def first_thing(tokens: Iterable[Token]) -> Token | None:
    """Return the first token that is neither neutral nor a kind."""
    return next((token for token in tokens if not (token.is_neutral or token.has("kind"))), None)


def number_in(tokens: Iterable[Token]) -> Token | None:
    return next((token for token in tokens if token.shape == "number"), None)


def states_of(tokens: Iterable[Token]) -> frozenset[str]:
    """Return the states that the tokens name."""
    return frozenset(token.concept("state") for token in tokens) - {""}


def names_of(*tokens: Token) -> frozenset[str]:
    """Return the names of tokens, with and without kind and namespace."""
    return frozenset(name for token in tokens for name in (token.text.rpartition("/")[2], token.text))


def share_token(part: Token, whole: Token) -> Token:
    """Join the tokens of `1 of 3` into one number."""
    parts = tuple(each.quantity for each in (part, whole) if each.quantity is not None)
    text = f"{part.text} of {whole.text}"
    return Token(shape="number", text=text, quantity=share_of(parts[0], parts[1]), parts=parts)


def _tags_of(text: str) -> frozenset[Tag]:
    """Return the tags of a whole word or phrase."""
    return lexicon().tags(text.split())


class Assertion(NamedTuple):
    """The tokens of one assertion.

    `goes_on` means that the assertion continues the previous assertion, for example after a comma or colon, or in
    brackets. `leads` means that the assertion ends with a colon.
    """

    tokens: tuple[Token, ...]
    goes_on: bool
    leads: bool


def assertions_of(statement: str) -> tuple[Assertion, ...]:
    """Split a statement into assertions, without closing punctuation or a label such as `Evidence:`.

    A word for a cause starts a new assertion.
    """
    label = _LABEL.match(statement)
    if label is not None and all(token.tags and token.tags <= _OF_LABELS for token in _tokens(label[1])):
        statement = statement[label.end() :]
    parts: list[tuple[list[Token], bool]] = [([], False)]
    leading: set[int] = set()
    for token in _with_shares(list(_with_numbers(list(_with_phrases(list(_tokens(statement))[:_MAX_TOKENS]))))):
        if token.shape == "end" or (token.has("and") and not token.quoted):
            leading |= {len(parts) - 1} if token.text == ":" else set()
            is_new = token.text in _NEW or token.shape != "end" or (not parts[-1][0] and not parts[-1][1])
            parts.append(([], not is_new))
        elif token.has("cause") and not token.quoted:
            parts.append(([token], False))
        else:
            parts[-1][0].append(token)
    return tuple(
        Assertion(tuple(tokens), goes_on, leads=index in leading)
        for index, (tokens, goes_on) in enumerate(parts)
        if tokens
    )


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
        tags=_tags_of(text),
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
            tags = _tags_of(match["name"])
            # A capitalised word of letters and hyphens is a word, not a name, for example a German compound.
            is_compound = match["name"][0].isupper() and match["name"].replace("-", "").isalpha()
            yield Token(shape="word" if tags or is_compound else "name", text=match["name"], tags=tags)
        else:
            word = match["elided"] or match["word"]
            word = word if _tags_of(word) else word.removesuffix("'s")
            tags = _tags_of(word)
            is_name = bool(_CAMEL_CASE.search(word)) and not any(each in ("kind", "field") for each, _ in tags)
            yield Token(shape="name" if is_name else "word", text=word, tags=tags)


def _with_phrases(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens. The words of each lexicon phrase are joined into one token."""
    position = 0
    while position < len(tokens):
        for length in range(min(_LONGEST_PHRASE, len(tokens) - position), 1, -1):
            run = tokens[position : position + length]
            if any(each.shape not in ("word", "name") or each.quoted for each in run):
                continue
            tags = lexicon().tags([each.text for each in run])
            if tags:
                yield Token(shape="word", text=" ".join(each.text for each in run), tags=tags)
                position += length
                break
        else:
            yield tokens[position]
            position += 1


def _with_numbers(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens, with number words converted to numbers: `three pods`, `one minute`."""
    position = 0
    while position < len(tokens):
        token, following = tokens[position], tokens[position + 1 : position + 3]
        position += 1
        if token.shape != "word" or not token.has("number"):
            yield token
            continue
        number = token.concept("number")
        unit = QUANTITY.fullmatch(f"{number} {following[0].text}") if following else None
        if unit is not None:
            yield Token(shape="number", text=unit[0], quantity=quantity_of(unit))
            position += 1
        elif number == "1" and not _counts(tokens[position - 2] if position > 1 else None, following):
            yield replace(token, tags=frozenset({("neutral", "")}))
        elif number.isdigit():
            yield Token(shape="number", text=token.text, quantity=count_of(int(number)))
        else:
            yield replace(token, tags=frozenset({("unjudged", "")}))


def _counts(before: Token | None, following: Sequence[Token]) -> bool:
    """Return whether `one` is a number and not an article or pronoun."""
    if before is not None and (before.has("compare") or before.has("only")):
        return True
    if not following or (before is not None and not (before.has("not") or before.shape == "end" or before.has("and"))):
        is_open = before is None or before.is_neutral
        return (
            is_open
            and bool(following)
            and (following[0].has("kind") or following[0].text.casefold() in words_of("partitive"))
        )
    first = following[0]
    if first.has("of which"):
        return True
    return any(first.has(each) for each in ("kind", "field", "noun", "not")) or first.text.casefold() in words_of(
        "partitive"
    )


def _with_shares(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens, with `1 of 3`, `none of the 3`, `all 3` and `3 hours and 17 minutes` each joined."""
    position = 0
    while position < len(tokens):
        token = tokens[position]
        share = _share_at(tokens, position)
        joined = _joined_time(tokens[position : position + 3])
        if share is not None:
            found, position = share
            yield from found
        elif joined is not None:
            yield joined
            position += 2 if tokens[position + 1].shape == "number" else 3
        elif token.has("only") and tokens[position + 1 : position + 2] and tokens[position + 1].shape == "number":
            yield replace(token, tags=frozenset({("compare", "=")}))
            position += 1
        else:
            yield token
            position += 1


def _share_at(tokens: Sequence[Token], position: int) -> tuple[tuple[Token, ...], int] | None:
    """Return the share that starts at `position`, with its tokens and its end."""
    token = tokens[position]
    is_none = token.has("not") and token.text.casefold() in words_of("nobody")
    if token.has("all") and position + 1 < len(tokens):
        place = position + 1 + (tokens[position + 1].text.casefold() in words_of("share"))
        if place < len(tokens) and tokens[place].is_count:
            return (replace(share_token(tokens[place], tokens[place]), tags=token.tags),), place + 1
        return None
    if not (token.is_count or is_none):
        return None
    part = token if token.is_count else Token(shape="number", text=token.text, quantity=count_of(0))
    end = position + 1
    kind = tokens[end : end + 1] if tokens[end : end + 1] and tokens[end].has("kind") else []
    end += len(kind)
    start = end
    while end < len(tokens) and end < start + 3 and tokens[end].text.casefold() in words_of("share"):
        end += 1
    if end == start or end >= len(tokens):
        return None
    whole = tokens[end] if not tokens[end].has("both") else Token(shape="number", text="2", quantity=count_of(2))
    return ((share_token(part, whole), *kind), end + 1) if whole.is_count else None


def _joined_time(tokens: Sequence[Token]) -> Token | None:
    """Join the tokens of `3 hours and 17 minutes` into one duration."""
    parts = [token for token in tokens if not token.has("and")][:2]
    first, second = (token.quantity for token in parts) if len(parts) == 2 else (None, None)
    if first is None or second is None or not parts[0].shape == parts[1].shape == "number":
        return None
    whole, rest = first.number("time"), second.number("time")
    if whole is None or rest is None or rest >= whole or len(first.dimensions | second.dimensions) > 1:
        return None
    quantity = Quantity(text=f"{first.text} {second.text}", meanings=frozenset({("time", whole + rest)}))
    return Token(shape="number", text=quantity.text, quantity=quantity)
