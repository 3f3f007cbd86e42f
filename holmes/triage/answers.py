"""Formats a first look as the short answer that a person reads.

The first line is the verdict. `details` adds everything that the short form omits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.triage.facts import MOST_ROWS
from holmes.triage.markdown import code, counted, fenced, plain, table
from holmes.values.expressions import expression
from holmes.values.verdicts import VERDICT_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.triage.conversation import SeenLook
    from holmes.values.first_look import FirstLook

NO_LLM: Final = "No LLM was used: this answer comes from the built-in rules of Holmes (builtin/triage)."
_MOST: Final = 20
"""The lines of an answer without its details. Rows of a table do not count."""
_MOST_LINES: Final = 3
_MOST_STEPS: Final = 6
_LINE_CHARACTERS: Final = 300
_MOST_OTHERS: Final = 2
"""The other incidents that an answer names, if it is about a namespace or the whole cluster."""
_QUOTE_CHARACTERS: Final = 20
_CONDITION: Final = expression(r"\.conditions\[type=(?P<type>\w+)\]\.(?:status|reason): ")
_TIMES: Final = expression(r", (?:once|\d+ times)(?: (?:at|from) \S+(?: to \S+)?)?$")
_QUOTED: Final = expression(r"`([^`]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Lines of an answer. `around` counts the blank line before them, a title and a fence."""

    lines: Sequence[str]
    around: int = 1


def answer_text(seen: SeenLook, *, details: bool = False, origin: str = NO_LLM, measured: Sequence[str] = ()) -> str:
    """Format the answer as Markdown. `origin` is the last line, which says where the answer comes from.

    `measured` contains lines about the conditions of alerts. Without `details`, the answer has at most 20 lines, and at
    most 15 rows of a table.
    """
    look = seen.look
    head, table = _headline(seen), _table(seen, details=details)
    blocks = {
        "evidence": _Block(lines=_evidence(seen, details=details)),
        "measured": _Block(lines=measured),
        "fix": _Block(lines=[line for each in look.fix for line in each.splitlines()], around=4),
        "against": _Block(lines=_against(look)),
        "rest": _Block(lines=_rest(look, details=details)),
        "chain": _Block(lines=_chain(look)),
    }
    written = [head, *([table] if table else []), origin]
    around = sum(len(text.splitlines()) + 1 for text in written) - 1 - _rows(look, details=details)
    shown = {name: block.lines for name, block in blocks.items()} if details else _fitted(blocks, _MOST - around)
    path, against, rest, alert = ("\n".join(shown[name]) for name in ("chain", "against", "rest", "measured"))
    parts = [head, "\n".join(shown["evidence"]), alert, path, against, table, _fix(look, shown["fix"]), rest, origin]
    return "\n\n".join(part for part in parts if part)


def _fitted(blocks: Mapping[str, _Block], room: int) -> dict[str, Sequence[str]]:
    """Return the lines that fit into so many lines: first one line of each block, then the others, block by block."""
    counts = dict.fromkeys(blocks, 0)
    for name, block in blocks.items():
        if block.lines and block.around < room:
            counts[name], room = 1, room - block.around - 1
    for name, block in blocks.items():
        if counts[name]:
            more = min(len(block.lines) - 1, room)
            counts[name], room = 1 + more, room - more
    return {name: _cut(name, block.lines, counts[name]) for name, block in blocks.items()}


def _cut(name: str, lines: Sequence[str], count: int) -> Sequence[str]:
    """Return `count` lines. The last one says how many notes or lines of a script are missing."""
    if count in (0, len(lines)) or name in {"evidence", "measured"}:
        return lines[:count]
    missing = counted(len(lines) - count + 1, "more line")
    return [*lines[: count - 1], f"# {missing}: ask `details`" if name == "fix" else f"{missing}: ask `details`."]


def _headline(seen: SeenLook) -> str:
    look = seen.look
    heading = "" if look.verdict == "answered" else look.heading or VERDICT_WORDS[look.verdict]
    severity = f" ({look.severity})" if look.severity and look.verdict == "cause_found" else ""
    named = look.culprit and f"`{look.culprit}`" not in look.summary
    text = _prose(look.summary.replace(look.culprit, f"`{look.culprit}`", 1) if named else look.summary)
    marker = cite(seen, look.summary) if look.verdict == "cause_found" else ""
    start = f"**{heading}**{severity}: " if heading and not look.summary.startswith(heading) else ""
    since = f" Known since {plain(look.since)}." if look.since and look.since not in look.summary else ""
    culprit = f" Culprit: {code(look.culprit)}." if look.culprit and look.culprit not in look.summary else ""
    return f"{start}{text}{marker}{culprit}{since}"


def _prose(text: str) -> str:
    """Return running text that keeps the code spans that Holmes wrote."""
    parts = _QUOTED.split(text)
    return "".join(code(part) if index % 2 else _kept_ends(part) for index, part in enumerate(parts))


def _kept_ends(text: str) -> str:
    start, end = (" " if text[:1].isspace() else ""), (" " if text[-1:].isspace() and text.strip() else "")
    return f"{start}{plain(text)}{end}" if text.strip() else start


def _evidence(seen: SeenLook, *, details: bool) -> list[str]:
    """Write the evidence: at most three lines, without what the summary already says, or all of it with `details`."""
    look = seen.look
    lines = [(line, line) for line in (*look.evidence, *look.lines)]
    if not details:
        places = [(line, _unrepeated(line, look.summary)) for line, _ in lines]
        lines = ([pair for pair in places if pair[1]] or [(line, _place(line)) for line, _ in lines[:1]])[:_MOST_LINES]
    return [f"- {code(shown, _LINE_CHARACTERS)}{cite(seen, line)}" for line, shown in lines]


def _unrepeated(line: str, summary: str) -> str:
    """Return a line of evidence, only its place if the summary quotes the value, or nothing if it says all of it."""
    value, condition = line.partition(": ")[2], _CONDITION.search(line)
    if condition is not None:
        told = condition["type"] in summary and value in summary
        return "" if told else line
    quotes = _letters(value) in _letters(summary) and len(value) >= _QUOTE_CHARACTERS
    if _letters(summary) in _letters(value):  # the line of the first of several subjects
        return ""
    return _place(line) if quotes else line


def _place(line: str) -> str:
    return _TIMES.sub("", line.partition(": ")[0])


def _chain(look: FirstLook) -> list[str]:
    if len(look.chain) <= 1:
        return []
    steps = [code(each) for each in look.chain]
    if len(steps) > _MOST_STEPS:
        steps[_MOST_STEPS // 2 : 1 - _MOST_STEPS // 2] = [f"… {len(steps) - _MOST_STEPS + 1} more …"]
    return [f"Path: {' → '.join(steps)}"]


def _against(look: FirstLook) -> list[str]:
    return [f"Against this cause: {plain('; '.join(look.against))}."] if look.against else []


def _rows(look: FirstLook, *, details: bool) -> int:
    rows = len(look.table.rows) if look.table else 0
    return rows if details else min(rows, MOST_ROWS)


def _table(seen: SeenLook, *, details: bool) -> str:
    found, most = seen.look.table, _rows(seen.look, details=details)
    if found is None or not most:
        return ""
    rows = found.rows[:most]
    text = table(found.header.split(" | "), [row.split(" | ") for row in rows])
    more = f"\n\n{len(rows)} of {found.total}." if found.total > len(rows) else ""
    marker = cite(seen, rows[0], rows[-1])
    return f"{text}{more}{f'{chr(10)}{chr(10)}Source:{marker}' if marker else ''}"


def _fix(look: FirstLook, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    title = "Likely fix (not run)" if look.verdict == "cause_found" else "Command (not run)"
    return f"{title}:\n{fenced(lines, 'sh')}"


def _rest(look: FirstLook, *, details: bool) -> list[str]:
    """Write the notes, the other incidents and the failed checks: one line each, or all of them with `details`."""
    lines = [_prose(note) for note in look.notes if not _is_told(note, look.summary)]
    if details:
        for title, items in (
            ("Other incidents", look.others),
            ("Related", look.neighbours),
            ("Not checked", look.not_checked),
        ):
            lines += ["", f"**{title}**", *(f"- {plain(each)}" for each in items)] if items else []
        return lines
    shown = look.others[:_MOST_OTHERS] if not look.subject else ()
    lines += [f"Also {plain(each, _LINE_CHARACTERS)}" for each in shown]
    if len(look.others) > len(shown):
        more = counted(len(look.others) - len(shown), "other incident")
        lines.append(f"{more} {look.scope or 'in the cluster'}; `holmes scan` lists them.")
    if look.not_checked:
        lines.append(f"Not checked: {plain('; '.join(look.not_checked), 200)}")
    return lines


def _is_told(note: str, summary: str) -> bool:
    """Return whether the summary contains all words that the note quotes."""
    quoted = _QUOTED.findall(note)
    return bool(quoted) and all(f"`{word}`" in summary for word in quoted)


def cite(seen: SeenLook, first: str, last: str = "") -> str:
    """Return the citation of a value in the YAML of the look with a leading space, or an empty string."""
    if not seen.result_id:
        return ""
    lines = seen.text.split("\n")
    start = _line_of(lines, first)
    if not start:
        return ""
    end = _line_of(lines, last) if last else start
    return f" [[{seen.result_id}:{start}{f'-{end}' if end > start else ''}]]"


def _line_of(lines: list[str], value: str) -> int:
    wanted = _letters(value)
    return next((number for number, line in enumerate(lines, 1) if wanted and wanted in _letters(line)), 0)


def _letters(text: str) -> str:
    """Return the letters and digits, which no quoting in YAML changes."""
    return re.sub(r"\\x..|\\u....|[^\w]", "", text)
