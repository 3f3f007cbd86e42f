"""Defines the records of a result (rows, objects, log entries, events), passages of cited lines, and judgements.

The table header, the parent object and the label of the list element are part of a record, even if those lines are not
cited. The fields and words of a record come only from its own lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.evidence.sources import UNKNOWN_SOURCE, canonical_kind
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.evidence.sources import Source
    from holmes.evidence.words import Token
    from holmes.values.events import CitationOutcome


Form: TypeAlias = Literal["row", "object", "entry", "event"]
_TOKEN = expression(r"\w+(?:(?:-+|\.(?=\d))\w+)*|[^\w\s\"\\]")
_JOINTS = expression(r" [:=]+(?= )")
_SURGE = expression(r"(\d{1,9}%?) (max unavailable|max surge)")
_REPEATED = expression(r"\(x(\d{1,9}) over (\w{1,20})\)")
_NODE_PORT = expression(r"\d:(\d{1,5})/")
_AGO = expression(r"\d{1,9} \((\w{1,20}) ago\)")
_PERCENT = expression(r"[\w.]{1,30} \((\d{1,9}%)\)")
_RATIO = expression(r"(\d{1,9}%?) ?/ ?(\d{1,9}%?)")
_NAMED_RATIO = expression(r"([A-Za-z][\w./-]{0,80}): ?([^\s,/]{1,30}) ?/ ?([^\s,]{1,30})")
_LONGEST_COMPOUND: Final = 500
_PLAIN = expression(r"[^a-z0-9%]+")
_MERGED: Final = {
    "livenessprobe": "liveness",
    "readinessprobe": "readiness",
    "startupprobe": "startup",
    "containerstatuses": "containers",
    "initcontainerstatuses": "initcontainers",
    "ephemeralcontainerstatuses": "ephemeralcontainers",
}
_ORDER: Final = ("not_found", "cited", "checked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A value with its path.

    Keys in `path` are in lower case, without punctuation. The label of a list element has the form `=app`.
    """

    path: tuple[str, ...]
    value: str
    line: int

    @property
    def key(self) -> str:
        """The last key in the path."""
        return next((part for part in reversed(self.path) if not part.startswith("=")), "")

    @property
    def labels(self) -> frozenset[str]:
        """The labels of the list elements that contain the value."""
        return frozenset(part[1:] for part in self.path if part.startswith("="))


@dataclass(frozen=True, kw_only=True)
class Record:
    """A table row, object, log entry or event in a result. `kind` may be empty."""

    form: Form
    first_line: int
    last_line: int
    names: frozenset[str] = frozenset()
    kind: str = ""
    fields: tuple[Field, ...] = ()
    lines: tuple[tuple[int, str], ...] = field(default=(), repr=False)
    is_part: bool = False

    def within(self, first_line: int, last_line: int) -> Record | None:
        """Return the part of the record in these lines, or None if these lines contain no part of it."""
        if self.last_line < first_line or self.first_line > last_line:
            return None
        if first_line <= self.first_line and self.last_line <= last_line:
            return self
        lines = tuple(each for each in self.lines if first_line <= each[0] <= last_line)
        fields = tuple(each for each in self.fields if first_line <= each.line <= last_line)
        return (
            replace(self, lines=lines, fields=fields, is_part=True) if any(text.strip() for _, text in lines) else None
        )

    def narrowed(self, label: str) -> Record:
        """Return a record with only the fields of the element `label`."""
        fields = tuple(each for each in self.fields if label in each.labels)
        numbers = {each.line for each in fields}
        return replace(
            self, fields=fields, lines=tuple(each for each in self.lines if each[0] in numbers), is_part=True
        )

    @cached_property
    def labels(self) -> frozenset[str]:
        """The labels of the list elements in the record, for example of containers, conditions and ports."""
        return frozenset(label for each in self.fields for label in each.labels)

    @cached_property
    def tokens(self) -> str:
        """The words and signs in the record's own lines, separated by spaces."""
        return tokens_of("\n".join(text for _, text in self.lines))

    @cached_property
    def folded(self) -> str:
        """`tokens` in lower case."""
        return self.tokens.casefold()

    @cached_property
    def phrases(self) -> str:
        """`folded` without the signs between keys and values."""
        return _JOINTS.sub("", self.folded)

    def says(self, text: str, *, exactly: bool = True) -> bool:
        """Return whether the words of `text` occur consecutively and in order, as whole words."""
        wanted = tokens_of(text) if exactly else tokens_of(text).casefold()
        return bool(wanted.strip()) and wanted in (self.tokens if exactly else self.folded)

    def of(self, keys: Iterable[str]) -> tuple[Field, ...]:
        """Return the fields whose key is one of `keys`."""
        wanted = frozenset(keys)
        return tuple(each for each in self.fields if each.key in wanted)


def parts_of(fields: Iterable[Field]) -> Iterator[Field]:
    """Yield the parts of compound values as separate fields.

    `1/2` and `cpu: 91%/70%` contain a current value and a total. `17 (3m ago)` contains a time, and `250m (6%)`
    contains a percentage. `2m (x5 over 10m)` contains the count of an event and its period.
    """
    for each in fields:
        value = each.value
        if len(value) > _LONGEST_COMPOUND or not any(sign in value for sign in "/(%"):
            continue
        if each.key in ("ports", "rollingupdatestrategy"):
            yield from _listed_parts(each)
            continue
        if match := _RATIO.fullmatch(value):
            names: tuple[str, ...] = (
                ("cpu",) if each.path == ("targets",) else ()
            )  # HPAs with one metric use this format
            yield from _current_and_total(each, names, match[1], match[2])
        elif match := _REPEATED.search(value):
            yield Field(path=("count",), value=match[1], line=each.line)
            yield Field(path=("window",), value=match[2], line=each.line)
        elif match := _AGO.fullmatch(value):
            yield Field(path=(*each.path, "ago"), value=match[1], line=each.line)
        elif match := _PERCENT.fullmatch(value):
            yield Field(path=(*each.path, "percent"), value=match[1], line=each.line)
        else:
            for match in _NAMED_RATIO.finditer(value):
                names = tuple(plain_key(part) for part in match[1].split("."))
                yield Field(path=(*each.path, *names), value=f"{match[2]}/{match[3]}", line=each.line)
                yield from _current_and_total(each, names, match[2], match[3])


def _listed_parts(each: Field) -> Iterator[Field]:
    yield from (Field(path=("nodeport",), value=port, line=each.line) for port in _NODE_PORT.findall(each.value))
    for number, name in _SURGE.findall(each.value):
        yield Field(path=(plain_key(name),), value=number, line=each.line)


def _current_and_total(each: Field, names: tuple[str, ...], current: str, total: str) -> Iterator[Field]:
    yield Field(path=(*each.path, *names, "current"), value=current, line=each.line)
    yield Field(path=(*each.path, *names, "total"), value=total, line=each.line)


def tokens_of(text: str) -> str:
    """Return the words and signs of `text`, separated by spaces."""
    return f" {' '.join(_TOKEN.findall(text))} "


def plain_key(text: str) -> str:
    """Return the canonical form of a key or heading: `Exit Code`, `exitCode` and `EXIT-CODE` are equal."""
    plain = _PLAIN.sub("", text.casefold().replace("%", "percent"))
    return _MERGED.get(plain, plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The records of the cited lines, and all parsed records of their result.

    `is_whole` means that `records` is the complete result. `is_empty_list` means that the result reports an empty list.
    `text` contains the cited lines with headings. `heading` is the first line of the result, which a quoted table may
    include.
    """

    cited: tuple[Record, ...]
    records: tuple[Record, ...]
    source: Source
    is_whole: bool = False
    is_empty_list: bool = False
    text: str = ""
    heading: str = ""

    @classmethod
    def joined(cls, passages: Sequence[Passage]) -> Passage:
        """Combine `passages` into one passage. Passages of several results are not treated as a complete result."""
        first = passages[0]
        if len(passages) == 1:
            return first
        is_one = all(each.records is first.records for each in passages)
        own = [record for each in passages for record in each.cited]
        return cls(
            cited=tuple({id(record): record for record in own}.values()),
            records=first.records if is_one else tuple(record for each in passages for record in each.records),
            source=first.source if all(each.source == first.source for each in passages) else UNKNOWN_SOURCE,
            is_whole=is_one and first.is_whole,
            text="\n".join(each.text for each in passages),
        )

    @property
    def is_uncut(self) -> bool:
        """Whether the result is complete and no limit of its command shortened it."""
        return self.is_whole and not self.source.is_cut

    def within(self, first_line: int, last_line: int, text: str) -> Passage:
        """Return a passage of the same result that cites other lines. `text` contains these lines."""
        parts = (record.within(first_line, last_line) for record in self.records)
        return replace(self, cited=tuple(part for part in parts if part is not None), text=text)

    def is_chosen(self, tokens: Sequence[Token]) -> bool:
        """Return whether a filter limited the result to some of the objects in the assertion.

        A filter that the assertion itself names is ignored.
        """
        told = {token.text for token in tokens}
        return not all(told & {each, each.rpartition("=")[2]} for each in self.source.filters)

    def objects(self, kind: str) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
        """Return the cited records of `kind`, and all records of `kind`.

        An empty kind selects log entries and events.
        """
        cited, everything = (
            tuple(record for record in records if self._is_of(record, kind)) for records in (self.cited, self.records)
        )
        return cited, everything

    def _is_of(self, record: Record, kind: str) -> bool:
        if not kind or kind == "event":
            return record.form == "event" or (not kind and record.form == "entry")
        return record.form != "entry" and (canonical_kind(record.kind) or self.source.kind) == kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The outcome of a claim or an assertion. `missing` contains the parts that the cited lines lack."""

    outcome: CitationOutcome
    missing: tuple[str, ...] = ()


CHECKED: Final = Judgement(outcome="checked")
CITED: Final = Judgement(outcome="cited")
EMPTY: Final = Judgement(outcome="cited")
"""The judgement of an assertion without content. It does not affect the claim."""


def not_found(*missing: str) -> Judgement:
    """Create a judgement with the outcome *not found* and the missing parts."""
    return Judgement(outcome="not_found", missing=tuple(dict.fromkeys(missing)))


def best_of(judgements: Sequence[Judgement]) -> Judgement:
    """Return the best judgement.

    Of several judgements with the outcome *not found*, the one with the fewest missing parts is best.
    """
    return max(judgements, key=lambda each: (_ORDER.index(each.outcome), -len(each.missing)))


def all_of(judgements: Sequence[Judgement]) -> Judgement:
    """Combine judgements into the worst outcome with all missing parts."""
    judgements = [each for each in judgements if each is not EMPTY]
    if not judgements:
        return EMPTY
    worst = min((each.outcome for each in judgements), key=_ORDER.index)
    missing = tuple(dict.fromkeys(item for each in judgements for item in each.missing))
    return Judgement(outcome=worst, missing=missing if worst == "not_found" else ())
