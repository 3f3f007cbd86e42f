"""Rates the severity of lines, states and numbers.

If a line states a level, the level has priority over severe words. Harmless phrases such as "0 errors" or "error
budget" have no effect. This module also rates Kubernetes states and conditions, parses image tags and amounts, and
detects outliers among numbers.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence


INFO, WARNING, ERROR, FATAL = 0.0, 2.0, 4.0, 6.0

LEVELS: Final = {
    **dict.fromkeys(
        ("trace", "trce", "debug", "dbug", "dbg", "info", "inf", "information", "notice", "log", "verbose", "i", "d"),
        INFO,
    ),
    **dict.fromkeys(("vrb", "infos", "información", "informação", "информация"), INFO),
    **dict.fromkeys(("warn", "warning", "wrn", "w", "warnung", "avertissement", "advertencia", "aviso"), WARNING),
    **dict.fromkeys(("avvertenza", "avviso", "advertência", "предупреждение"), WARNING),
    **dict.fromkeys(("error", "err", "severe", "e", "failure", "fail", "eror"), ERROR),
    **dict.fromkeys(("fehler", "schwerwiegend", "erreur", "grave", "errore", "erro", "błąd", "ошибка"), ERROR),
    **dict.fromkeys(("серьезно", "エラー"), ERROR),
    **dict.fromkeys(("crit", "critical", "alert", "emerg", "emergency", "fatal", "panic", "dpanic", "f"), FATAL),
    **dict.fromkeys(("crt", "ftl", "pnc", "kritisch", "critique", "crítico", "critico"), FATAL),
}
"""Levels as loggers write them, also in other languages: a JVM translates its own, PostgreSQL those of its messages."""
_LEVEL_WORDS = "|".join(sorted((level for level in LEVELS if len(level) > 2), key=len, reverse=True))
_LETTER = expression(
    r"([IWEF])\d{4} (?:\d\d:\d\d:\d\d|[\w.-]+\.(?:go|cc|cpp):\d+\])|([DIWEF]), \["
    r"|\s*\[([DIWEF])\](?= )|([DIWEF]) [A-Z]{4,}\s"
)
_PRIORITY = expression(r"<(\d{1,3})>")
"""The priority of a line for syslog or the journal: the facility and eight severities."""
_PRIORITIES: Final = (FATAL, FATAL, FATAL, ERROR, WARNING, INFO, INFO, INFO)
_CHANNEL = expression(r"\b[A-Za-z_]\w{0,40}\.(DEBUG|INFO|NOTICE|WARNING|ERROR|CRITICAL|ALERT|EMERGENCY): ")
_LEVEL_FIELD = expression(r'\b(?:level|lvl|severity|loglevel|levelname)"?\s*[=:]\s*"?([A-Za-z]+)')
_LEVEL_BRACKET = expression(rf"[\[<(|]\s*((?i:{_LEVEL_WORDS}))\s*[\]>)|]")
_LEVEL_TOKEN = expression(rf"(?<![\w.=/-])({_LEVEL_WORDS.upper()})(?![\w.=-]|/(?![A-Z]))")
_LEVEL_AT_START = expression(
    rf"\s*(?:((?i:{_LEVEL_WORDS})):"
    r"|((?i:trace|debug|info|warn|warning|error|fatal|panic)) (?!rates?\b|budget|counts?\b))"
)
_LEVEL_WINDOW = 110
_READ_CHARACTERS = 3_000

_HARMLESS = expression(
    r"(?i)\b(?:no|0|zero|without|any) (?:\w+ )?(?:errors?|failures?|failed|exceptions?|panics?|warnings?|timeouts?)\b"
    r'|\b[\w.-]{0,40}(?:errors?|failures?|failed|exceptions?|timeouts?|rejected|dropped|denied|lost)(?:_total|_count|s)?"?'
    r'\s*[=:]\s*"?(?:0(?:\.0+)?|nil|null|none|false|<nil>)\b(?!\.)'
    r"|\berror (?:budget|rate|reporting|handler|handling|page|tracking|logging)\b|\b(?:fail|fall)[- ]?(?:over|back)\b"
    r"|\b(?:on|for|if|of) (?:errors?|failures?)\b|\btimeout[=: ]+\d+|/[\w/-]{0,60}errors?[\w/.-]{0,60}"
)
_FATAL_WORDS = expression(
    r"(?i)\bpanic\b|\bfatal\b|OOM-?Kill|\bout of memory\b|\boom[-_ ]|segfault|segmentation fault|core dumped"
    r"|\bkilled process|OutOfMemory|data loss|\bSIG(?:SEGV|ABRT|KILL)|no space left|disk full|read-only file system"
)
_STRONG_WORDS = expression(
    r"(?i)exception\b|traceback|(?:authentication|authorization) failed|connection (?:refused|reset|timed out)"
    r"|no such (?:host|file)|permission denied|access denied|\bforbidden\b|unauthori[sz]ed|x509"
    r"|certificate (?:has )?expired"
    r"|deadline exceeded|too many (?:open files|connections|requests)|deadlock|\bcorrupt|\bcrash|\bevict"
    r"|exit(?:ed)?(?: with)?[ _]?(?:code|status)?[=: ]+[1-9]|unhealthy|not ?ready|backoff|unreachable|\bbroken pipe"
    r"|\bmissing\b|\babort|(?-i:[a-z](?:Error|Exception)\b)|read-?only\b|not set\b|\bexpired\b"
)
_MILD_WORDS = expression(
    r"(?i)\berrors?\b|\bfail(?:ed|ure|s|ing)?\b|\bwarn|time[d ]*[- ]?out\b|\bdenied\b|\brefused\b|\brejected\b"
    r"|\bunable to\b"
    r"|\bcannot\b|\bcould not\b|\bnot found\b|\binvalid\b|\blost\b|\bkilled\b|\bthrottl|\bunknown\b|\bdropp|\bslow\b"
    r"|\bunexpected|\bretr(?:y|ies|ying)\b|\bstale\b|\bdegraded\b|\bpressure\b|\bfalling back|\bdisabled\b|\bskipp"
)
# Every match of the three patterns above contains one of these hints. A search for the hints excludes most lines at low
# cost.
_HINTS = (
    "abort", "backoff", "broken", "cannot", "corrupt", "could not", "crash", "deadlock", "degraded", "denied",
    "disabled",
    "drop", "dump", "error", "evict", "exceeded", "exception", "exit", "expired", "fail", "falling", "fatal",
    "forbidden",
    "full", "invalid", "kill", "loss", "lost", "memory", "missing", "no such", "no space", "not found", "not ready",
    "not set", "notready", "oom", "panic", "pressure", "read-only", "readonly", "refused", "reject", "reset", "retr",
    "segfault", "segmentation", "sigabrt", "sigsegv", "skipp", "slow", "stale", "throttl", "time out", "time-out",
    "timed", "timeout", "too many", "traceback", "unable", "unauthori", "unexpected", "unhealthy", "unknown",
    "unreachable", "warn", "x509",
)  # fmt: skip
STATUS: Final = expression(
    r'" (\d{3}) |\b(?:status|[Ss]tatus_?[Cc]ode|(?:http|response|upstream|downstream)_(?:status|code)'
    r"|(?:Origin|Downstream|Upstream)Status|code|response)"
    r'"?[=: ]\s*"?(\d{3})\b'
    r"|\bexit(?:ed with)?[ _]?(?:code|status)?[=: ]+(\d{1,3})\b"
    r"|\b(?:GET|POST|PUT|DELETE|PATCH|HEAD) [^\s\"]{1,300} (?:responded |-> )?(\d{3})(?= |$)"
    r"|\b(?:Sent|Completed|responded(?: with)?) ([1-5]\d\d)\b"
    r"|(?:^|\s)([1-5]\d\d) (?=(?:GET|POST|PUT|DELETE|PATCH|HEAD) /)"
)
_HEALTHY = frozenset(
    {
        "", "running", "completed", "succeeded", "active", "bound", "ready", "available", "true", "normal", "healthy",
        "synced", "deployed", "complete", "ok", "yes", "established", "valid", "issued", "success", "none", "<none>",
        "clusterip", "nodeport", "loadbalancer", "externalname", "opaque", "approved,issued", "up", "pass", "passed",
        "progressing", "initialized", "podscheduled", "containersready", "terminated", "started", "reconciled",
        "online", "open", "enabled", "created", "pulled", "scheduled", "on", "connected", "superseded",
    }
)  # fmt: skip
_BAD = (
    "backoff", "err", "fail", "oomkilled", "evicted", "notready", "unknown", "crash", "invalid", "lost", "deadline",
    "unhealthy", "degraded", "terminating", "pending", "schedulingdisabled", "outofsync", "missing",
    "containercreating", "init:", "podinitializing", "false", "released", "stalled", "unschedulable", "nodelost",
    "containercannotrun",
    "warning", "critical", "down", "suspended", "conflict", "exhausted", "expired", "rejected", "denied", "timeout",
)  # fmt: skip
_MILDLY_BAD = ("terminating", "pending", "containercreating", "podinitializing", "false", "released", "suspended")
_NEGATIVE_CONDITIONS = ("Pressure", "Unavailable", "Failed", "Failure", "Degraded", "Stalled", "Disruption", "Problem",
                       "Deadlock", "Terminating", "Dangling", "FailureTarget", "NonStructuralSchema")  # fmt: skip
_NUMBER = expression(r"(-?\d+(?:\.\d+)?)(%|[num]|[kKMGT]i?|[EP]i|)(?: \(.*)?$")
_DURATION = expression(r"(?:(\d+)y)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?: ago)?$")
_UNITS = {
    "": 1.0, "%": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_SAMPLE = 20_000
_FAR = 3.5
_MOST = 12.0


def level_of(line: str) -> float | None:
    """Return the level that `line` states, or None if it states no level.

    Searches only the start of the line and the level field.
    """
    window = line[:_LEVEL_WINDOW]
    priority = _PRIORITY.match(window)
    if priority:
        return _PRIORITIES[int(priority[1]) % len(_PRIORITIES)]
    match = (
        _LETTER.match(window)
        or _LEVEL_BRACKET.search(window)
        or _LEVEL_TOKEN.search(window)
        or _LEVEL_AT_START.match(window)
        or _CHANNEL.search(window)
    )
    if match and match.lastindex:
        return LEVELS[match[match.lastindex].lower()]
    field = _LEVEL_FIELD.search(line[:1_000])
    return LEVELS.get(field[1].lower()) if field else None


def severity_of(line: str, level: float | None = None) -> float:
    """Return the severity of a line: 0 for a normal line, up to about 8 for a panic.

    If the level of the line is already known, `level` contains it.
    """
    stated = level_of(line) if level is None else level
    words = word_severity(line)
    if stated is None:
        return words
    if stated <= INFO:
        return words * 0.5 if words >= 2.5 else 0.0
    return stated + words * 0.4


def word_severity(line: str) -> float:
    """Return the severity of the words in `line`. Ignores the level."""
    line = line[:_READ_CHARACTERS]
    if not may_be_severe(line):
        return 0.0
    rest = _HARMLESS.sub(" ", line)
    if _FATAL_WORDS.search(rest):
        return 5.0
    strong = _STRONG_WORDS.search(rest)
    mild = _MILD_WORDS.search(rest)
    return (3.0 if strong else 0.0) + (1.2 if mild else 0.0)


def may_be_severe(line: str) -> bool:
    """Return whether `line` may contain severe words. If not, `word_severity` is 0."""
    lowered = line[:_READ_CHARACTERS].lower()
    return any(hint in lowered for hint in _HINTS)


def severe_position(line: str) -> int:
    """Return the position of the first severe word in `line`, or 0 if the line contains none."""
    if not may_be_severe(line):
        return 0
    for pattern in (_FATAL_WORDS, _STRONG_WORDS, _MILD_WORDS):
        match = pattern.search(line, 0, _READ_CHARACTERS)
        if match:
            return match.start()
    return 0


def status_of(line: str) -> tuple[str, float] | None:
    """Return the HTTP status or exit code in `line` with its severity, or None if the line contains neither."""
    match = STATUS.search(line)
    if match is None or match.lastindex is None:
        return None
    status = match[match.lastindex]
    if match[3]:
        return f"exit {status}", 0.0 if status == "0" else ERROR
    if status >= "500":
        return status, 3.5
    return status, 1.0 if status in {"401", "403", "429", "408"} else 0.3 if status >= "400" else INFO


def badness_of(value: str, *, total: int, count: int) -> float:
    """Return the severity of a state, from 0 to 18. The severity is lower if many objects have the same state."""
    lowered = value.lower()
    if lowered in _HEALTHY:
        return 0.0
    if not any(word in lowered for word in _BAD):
        return 4.0 if word_severity(value) else 0.0
    points = 9.0 if lowered in _MILDLY_BAD else 18.0
    return points if count * 10 <= total or count <= 3 else points * 0.5


def condition_is_bad(kind: str, status: str) -> bool:
    """Return whether `status` is bad for a condition of type `kind`."""
    if kind.endswith(_NEGATIVE_CONDITIONS):
        return status == "True"
    return status in {"False", "Unknown"}


def image_parts(images: str) -> list[tuple[str, str]]:
    """Return the repository and the tag of each image in a comma-separated list. The tag may be a digest or empty."""
    parts = []
    for image in images.split(","):
        if "://" in image or ("/" not in image and ":" not in image):
            continue
        if "@" in image:
            repository, _, digest = image.partition("@")
            parts.append((repository, digest[:14]))
            continue
        repository, colon, tag = image.rpartition(":")
        if not colon or "/" in tag:
            repository, tag = image, "(no tag)"
        parts.append((repository, tag))
    return parts


@functools.lru_cache(maxsize=16_384)
def number_of(cell: str) -> float | None:
    """Return the number in a cell such as `12`, `250m`, `3 (5m ago)`, `87%` or `5d3h`.

    Durations are converted to seconds. Returns None if the cell does not contain such a number.
    """
    if not cell or not (cell[0].isdigit() or cell[0] == "-") or len(cell) > 40:
        return None
    match = _NUMBER.match(cell)
    if match:
        return float(match[1]) * _UNITS[match[2]]
    duration = _DURATION.match(cell)
    if duration is None:
        return None
    years, days, hours, minutes, seconds = (int(part or 0) for part in duration.groups())
    return float((((years * 365 + days) * 24 + hours) * 60 + minutes) * 60 + seconds)


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of numbers. `middle` and `width` are the median and typical deviation of the logarithms."""

    median: float
    middle: float
    width: float
    largest: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread:
        """Compute the spread of `numbers`, which must not be empty. A long sequence is sampled evenly."""
        import statistics  # imported here, because most previews do not need it

        sample = numbers[:: max(1, len(numbers) // _SAMPLE)]
        logs = [_log(number) for number in sample]
        middle = statistics.median(logs)
        width = statistics.median(abs(each - middle) for each in logs) * 1.4826
        spread = statistics.pstdev(logs)
        return cls(statistics.median(sample), middle, max(0.3, width, spread * 0.4), max(numbers))

    def distance(self, number: float) -> float:
        """Return how unusual `number` is: 0 for usual numbers, and 3.5 to 12 for outliers."""
        far = abs(_log(number) - self.middle) / self.width
        return min(_MOST, far) if far >= _FAR else 0.0


def _log(number: float) -> float:
    return math.copysign(math.log1p(abs(number)), number)
