"""What became of the words of one assertion so far: shown, missing, or in doubt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.core.evidence.bindings import Reading, with_keys
from holmes.core.evidence.records import plain_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.evidence.records import Field, Record
    from holmes.core.evidence.sources import Source
    from holmes.core.evidence.words import Token


@dataclass(slots=True, kw_only=True)
class Account:
    """`missing` is what the record lacks or contradicts, `doubts` what cannot be judged, `proved` how much holds."""

    record: Record
    source: Source
    tokens: Sequence[Token]
    missing: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    proved: int = 0
    _elements: list[frozenset[tuple[str, ...]]] = field(default_factory=list)
    _reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = with_keys(self.tokens, self.record)
        self._reading = Reading(record=self.record, tokens=self.tokens)

    @property
    def _is_text(self) -> bool:
        return self.record.form in ("entry", "event")

    def _judge(self, text: str, *, shown: bool | None) -> None:
        """Note that `text` is shown, contradicted, or neither."""
        if shown is None:
            self.doubts.append(text)
        elif shown:
            self.proved += 1
        else:
            self.missing.append(text)

    def _settle(self, text: str, fields: Sequence[Field], matching: Sequence[Field]) -> None:
        """What came of a value in the fields that the assertion names."""
        if matching:
            self.proved += 1
            self._note_elements(matching)
        elif fields or not self.record.says(text, exactly=False):
            self.missing.append(text)
        else:
            self.doubts.append(text)

    def _note_elements(self, fields: Sequence[Field]) -> None:
        """Remember to which elements of lists a value belongs, so that two of them are not mixed."""
        found = frozenset(tuple(part for part in each.path if part.startswith("=")) for each in fields)
        if found and () not in found and not all(each.key in ("name", "type") for each in fields):
            self._elements.append(found)

    def _note_condition(self, names: Sequence[str]) -> None:
        """Remember to which condition a state belongs."""
        conditions = [
            each
            for each in self.record.fields
            if each.key == "status" and any(plain_key(label) in names for label in each.labels)
        ]
        self._note_elements(conditions)
