"""Where a quoted line stands in a result, as the citation that the loop checks: `[[<result id>:<lines>]]`.

Used by whatever writes an answer. A result without an id, because citations or the store are off, is quoted without a
citation. What was read back from a pointer is cited at its first line: the loop moves a citation to where its quote
stands.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.previews import readable_json

if TYPE_CHECKING:
    from holmes.triage.conversation import Outcome
    from holmes.values.findings import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A result that can be cited: its lines as citations count them, empty when only parts of it were read back."""

    result_id: str = ""
    lines: tuple[str, ...] = ()

    def marker(self, first: int, last: int | None = None) -> str:
        """The citation of these lines, which count from 1, with a space before it; empty without a result id."""
        if not self.result_id:
            return ""
        span = f"{first}-{last}" if last is not None and last != first else str(first)
        return f" [[{self.result_id}:{span}]]"

    def of_value(self, key: str, value: str) -> str:
        """The citation of `"key": "value"` in a JSON result."""
        if not self.lines:
            return self.marker(1)
        wanted = f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        position = self._line_that_starts(wanted)
        return self.marker(position) if position else ""

    def of_evidence(self, evidence: Evidence) -> str:
        """The citation of one piece of evidence in a diagnosis: its object, path and value."""
        if not self.lines:
            return self.marker(1)
        path = f'"path": {json.dumps(evidence.path, ensure_ascii=False)}'
        value = f'"value": {json.dumps(evidence.value, ensure_ascii=False)}'
        for index, line in enumerate(self.lines[:-1]):
            if line.lstrip().startswith(path) and self.lines[index + 1].lstrip().startswith(value):
                has_object = index > 0 and '"object"' in self.lines[index - 1]
                return self.marker(index if has_object else index + 1, index + 2)
        return ""

    def _line_that_starts(self, wanted: str) -> int:
        return next((number for number, line in enumerate(self.lines, 1) if line.lstrip().startswith(wanted)), 0)


def source_of(outcome: Outcome) -> Source:
    """The result of `outcome` as something to cite."""
    if outcome.partial:
        return Source(result_id=outcome.stored_id)
    return Source(result_id=outcome.result_id, lines=tuple(readable_json(outcome.text).split("\n")))
