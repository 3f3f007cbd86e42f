"""Parses one line of a log: its level, its role, and its pattern with masked variable parts.

Reads plain text, lines with one JSON object, klog, logfmt and access logs. Lines may have the prefixes of container
runtimes and kubectl.
This module also detects the kind of a text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from holmes.previews.excerpts import without_terminal_codes
from holmes.previews.severity import (
    ERROR,
    FATAL,
    INFO,
    LEVELS,
    WARNING,
    level_of,
    severity_of,
    status_of,
    word_severity,
)
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.previews.budget import PreviewKind


_MASKED_CHARACTERS = 400
_POD_PREFIX = expression(r"\[pod/[^\]\s]+\]\s?|\[[a-z0-9-]+/[a-z0-9./-]+\]\s")
_RUNTIME_PREFIX = expression(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP] ")
_TIMESTAMP = expression(
    r"[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[\d.,:]*\s?(?:Z|UTC|[+-]\d\d:?\d\d)?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d[.\d]*|\d\d:\d\d:\d\d[.,\d]*)[\])]?\s*"
)
_CLOCK = expression(r"(?<![\d:])(\d\d:\d\d:\d\d)(?![\d:])")
_VARIABLE = expression(r"(?<![\w.@-])[A-Za-z_.@-]*\d[\w.@:+-]*")
_POD_LIKE = expression(r"(?<![\w-])[a-z][a-z0-9]*(?:-[a-z0-9]+)*-[bcdfghjklmnpqrstvwxz2456789]{5,10}(?![\w-])")
_REPEATED = expression(r"\*(?:[\s,;:/|-]*\*)+")
_INDENTED = expression(
    r"[ \t]+\S|Caused by:|\.\.\. \d+ more|goroutine \d+ |created by |main\.|\tat |Traceback \(most recent call last\)"
    r"|The above exception was|During handling of the above|# (?:Query_time|Schema|Bytes_sent|Thread_id): "
    r"|SET timestamp=|(?:DETAIL|HINT|CONTEXT|STATEMENT|QUERY):? "
)
_DETAIL = expression(r"(?:[\w@.:\[\]/-]{1,80} ){0,6}(?:DETAIL|HINT|CONTEXT|STATEMENT|QUERY):  ")
_CAUSE = expression(
    r"\s*(?:Caused by: |---> |\[cause\]: "
    r"|(?:[A-Za-z_]\w*(?:\.|::|\\))*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b(?:[:\s]|$))"
)
_NAMED = expression(r"(?:[a-z_]\w*\.)+(?:[A-Z]\w*[a-z]|\w*(?:error|timeout)): ")
_USUAL_START = expression(r"(?:ts|time|level|lvl)=\S|[DIWEF], \[|\S+ \S+ \S+ \[\d\d/\w{3}/\d{4}:")
_LEVEL_KEYS = ("level", "severity", "lvl", "log.level", "levelname", "loglevel", "@l")
_MESSAGE_KEYS = ("msg", "message", "log", "event", "text", "body", "short_message", "@m", "@mt", "fields")
_ERROR_KEYS = (
    "error", "err", "exception", "stack_trace", "stacktrace", "stack", "reason", "cause", "exc_info", "@x", "thrown",
    "error.message", "attr",
)  # fmt: skip
_NUMERIC_LEVELS = ((60, FATAL), (50, ERROR), (40, WARNING), (0, INFO))
_INNER_KEYS = ("type", "name", "message", "msg", "errmsg", "error", "err", "code", "reason", "cause")

LineRole = Literal["head", "indented", "stray"]
_SAMPLE_CHARACTERS = 60_000
_SAMPLE_LINES = 300
_HEADER_WORD = r"[A-Z][A-Z0-9_%/.-]*(?:\([A-Za-z%]+\))?"
_TABLE_HEADER = expression(rf"{_HEADER_WORD}(?: {_HEADER_WORD})*(?: {{2,}}{_HEADER_WORD}(?: {_HEADER_WORD})*)+ *$")
_EVENT_HEADER = expression(r"(?=.*\bTYPE\b)(?=.*\bREASON\b)(?=.*\bMESSAGE\b)")
_YAML_LINE = expression(r"\s*(?:- )*(?:\"[^\"]+\"|'[^']+'|[\w.$/@*-][\w .$/@()-]*):(?: |$)|\s*- \S|---|\s*#|\s*$")
_YAML_START = expression(r"(?m)^(?:apiVersion|kind|items|metadata): ?|^- \w+:")
_CONTROL = expression(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\ud800-\udfff\ufffd]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLine:
    """The pattern, severity and role of a line.

    The role `head` marks the first line of a log entry, and `indented` marks a continuation. `stray` marks a line
    without the usual start, which is a continuation only after another continuation. `is_cause` is true if the line
    states the exception of a stack trace. `may_be_cause` is true if it does so after other lines of a trace.
    `has_status` is true if the line contains an HTTP status or an exit code.
    """

    pattern: str
    severity: float
    level: float | None
    role: LineRole
    is_cause: bool = False
    may_be_cause: bool = False
    has_status: bool = False


def parse_line(line: str, *, usual_start: bool) -> ParsedLine:
    """Parse `line`. If `usual_start` is true, most lines of this log start with a time, a level or a brace."""
    text = _bare_line(line)
    if text.startswith("{"):
        parsed = _json_line(text)
        if parsed is not None:
            return parsed
    stamp = _TIMESTAMP.match(text)
    body = text[stamp.end() :] if stamp else text
    is_cause = _CAUSE.match(body) is not None
    may_be_cause = not stamp and _NAMED.match(body) is not None
    if (_INDENTED.match(text) and not stamp) or _DETAIL.match(body):
        role: LineRole = "indented"
    else:
        strange = usual_start and not stamp and not begins_like_a_log_line(text)
        role = "stray" if strange or is_cause or may_be_cause else "head"
    stated = LEVELS[text[0].lower()] if stamp and text[:1] in "IWEF" and text[1:5].isdigit() else None
    severity = severity_of(body[:4_000], stated)
    if is_cause:
        severity = max(severity, 4.5)
    status = status_of(body)
    return ParsedLine(
        pattern=mask(body),
        severity=severity,
        level=stated if stated is not None else level_of(body),
        role=role,
        is_cause=is_cause,
        may_be_cause=may_be_cause,
        has_status=status is not None,
    )


def _bare_line(line: str) -> str:
    """Remove colours, the pod prefix and the runtime prefix from `line`."""
    text = without_terminal_codes(line)
    if text.startswith("["):
        prefix = _POD_PREFIX.match(text)
        text = text[prefix.end() :] if prefix else text
    runtime = _RUNTIME_PREFIX.match(text)
    return text[runtime.end() :] if runtime else text


def mask(text: str) -> str:
    """Replace numbers, ids, addresses, hashes and times in `text` with `*`."""
    masked = _VARIABLE.sub("*", text[:_MASKED_CHARACTERS])
    if "-" in masked:
        masked = _POD_LIKE.sub("*", masked)
    return _REPEATED.sub("*", masked)


def without_time(line: str) -> str:
    """Return `line` without known prefixes and the time at its start."""
    text = _bare_line(line)
    stamp = _TIMESTAMP.match(text)
    return text[stamp.end() :] if stamp else text


def clock_of(line: str) -> str:
    """Return the time of day in `line`, or an empty string if the line contains no time."""
    match = _CLOCK.search(line[:200])
    return match[1] if match else ""


def begins_like_a_log_line(line: str) -> bool:
    """Return whether `line` starts with a time, a level or a JSON object. Ignores known prefixes."""
    text = _bare_line(line)
    if _TIMESTAMP.match(text):
        return True
    if text.startswith("{") and text.rstrip().endswith("}"):
        return True
    first = text[:12].lstrip("[<( ").split(":", 1)[0].split(" ", 1)[0].strip("])>").lower()
    if len(first) > 2 and first in LEVELS:
        return True
    return bool(re.match(r"(?:ts|time|level|lvl)=\S|[DIWEF], \[", text)) or bool(
        re.match(r"\S+ \S+ \S+ \[\d\d/\w{3}/\d{4}:", text)
    )


def _json_line(text: str) -> ParsedLine | None:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    outer = fields.get("log")
    level_text = _first({**fields, **outer} if isinstance(outer, dict) else fields, _LEVEL_KEYS).lower()
    message, error = _first(fields, _MESSAGE_KEYS), _first(fields, _ERROR_KEYS)
    level = LEVELS.get(level_text or str(fields.get("s", "")).lower())
    if level is None and level_text.isdigit():
        level = next(stated for least, stated in _NUMERIC_LEVELS if int(level_text) >= least)
    severity = severity_of(f"{message} {error}", level)
    if error and severity < 2.0:
        severity = max(severity, word_severity(error))
    if not message:
        rest = {key: value for key, value in fields.items() if key not in {"ts", "time", "timestamp", "@timestamp"}}
        message = json.dumps(rest)
    pattern = f"{level_text}|{mask(message)}|{mask(error)}"
    has_status = status_of(text) is not None
    return ParsedLine(pattern=pattern, severity=severity, level=level, role="head", has_status=has_status)


def _first(fields: dict[str, object], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
            return str(value)
        if isinstance(value, dict):
            inner = [value[name] for name in _INNER_KEYS if isinstance(value.get(name), str | int)]
            return ": ".join(map(str, inner)) or json.dumps(value)
    return ""


def detect(text: str) -> PreviewKind:
    """Detect the kind of `text` from samples at its start, middle and end."""
    start = text[:_SAMPLE_CHARACTERS]
    if len(_CONTROL.findall(start[:8_192])) * 20 > len(start[:8_192]):
        return "binary"
    if _looks_like_json(text):
        return "json"
    lines = [line for line in start.split("\n")[:_SAMPLE_LINES] if line.strip()]
    if not lines:
        return "text"
    header = next((line for line in lines[:5] if table_header(line)), None)
    if header is not None and len(lines) > 1:
        return "events" if _EVENT_HEADER.match(header) else "table"
    if _YAML_START.search(start) and sum(_YAML_LINE.match(line) is not None for line in lines) * 10 > len(lines) * 6:
        return "yaml"
    middle = text[len(text) // 2 : len(text) // 2 + _SAMPLE_CHARACTERS // 4].split("\n")[1:-1]
    sample = lines + [line for line in middle if line.strip()]
    heads = [line for line in sample if not line[0].isspace()]
    starts = sum(begins_like_a_log_line(line) for line in heads)
    return "logs" if starts * 3 >= len(heads) and starts >= 3 else "text"


def table_header(line: str) -> bool:
    """Return whether `line` is the header of a kubectl table."""
    return len(line) < 2_000 and _TABLE_HEADER.match(line.rstrip()) is not None


def _looks_like_json(text: str) -> bool:
    """Return whether `text` looks like one JSON document. Several lines with one object each are treated as a log."""
    first = text[:4_096].lstrip()
    if first[:1] == "[":
        return re.match(r'\[\s*(?:[\[{"\]]|-?\d|true|false|null)', first) is not None and not begins_like_a_log_line(
            first.split("\n")[0]
        )
    if first[:1] != "{" or not re.match(r'\{\s*(?:"|\})', first):
        return False
    lines = [line for line in text[:_SAMPLE_CHARACTERS].split("\n")[:20] if line.strip()]
    return not (len(lines) > 1 and all(line.startswith("{") for line in lines[1:3]) and lines[0].rstrip().endswith("}"))
