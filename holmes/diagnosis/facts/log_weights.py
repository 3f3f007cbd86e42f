"""Tells why a record of a log reports trouble, and whether a client's mistake or a lasting state is its reason.

A level alone is not evidence, and neither are words without a level: the place of the record in its log decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.line_kinds import reports_success
from holmes.previews.severity import ERROR, WARNING
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.previews.log_patterns import Pattern

Weight: TypeAlias = Literal["kind", "error", "status", "warning", "none"]
"""Why a group reports trouble, the strongest first: its kind, its level, an HTTP status, or only a warning."""

_SERVER_ERROR: Final = expression(
    r"(?i)\b(?:(?:origin|downstream|upstream|http|response)_?)?(?:status|(?<=_)code)(?:_?code)?[\"']?\s?[=:]\s?[\"']?5\d\d\b"
    r"(?![^{}]*\} 0(?:\n|$)| percentage)"
    r"|\bHTTP/\d(?:\.\d)?\"? 5\d\d\b"
    r"|\b(?:answer(?:ed|ing)|repl(?:ied|ying)|return(?:ed|s|ing)|got|respond(?:ed|s|ing)?)(?: with| HTTP){0,2} 5\d\d\b"
    r"|\b(?:Sent|Completed) 5\d\d\b"
    r"|-> 5\d\d\b|(?:GET|POST|PUT|DELETE|PATCH|HEAD) [^\s\"]{1,300}:? 5\d\d\b|https?://[^\s\"]{1,300}: 5\d\d\b"
    r"|(?<!after )\b5\d\d (?:Bad Gateway|Service Unavailable|Gateway Time|Internal Server)"
    r"|(?:^|\s)5\d\d (?:GET|POST|PUT|DELETE|PATCH) /"
)
_REFUSAL: Final = expression(r"4\d\d\|")
"""The beginning of a pattern with an HTTP status of a refused request."""
_SERVER_STATUS: Final = expression(r"5\d\d")
_STATUS_BEFORE: Final = expression(r"^\d{3}\|")
_PROXIED: Final = expression(r"(?i)\bupstream|\boutbound\||\[[a-z][a-z0-9-]*-\d{2,5}\]|\bvia_upstream\b|\bbackend[=:_]")
"""A part of a line in which a proxy names the server that it asked."""
_HANDLED: Final = expression(
    r"(?i)\bskipp(?:ed|ing)\b|\bignor(?:ed|ing)\b|\busing (?:the )?default|\bdeprecat|\bfalling back\b|\bfell back\b"
    r"|\bno new [a-z]|\bnothing (?:new|to do)\b"
)
_RELAYED: Final = expression(
    r"(?i)\b(?:reports?|crash(?:es)?|dumps?|traces?|tickets?|alerts?|events?|documents?|batch) (?:\S{1,30} ){0,3}"
    r"(?:received|accepted|stored|ingested|indexed|archived|collected|forwarded)\b"
    r"|\b(?:received|accepted|stored|ingested|indexed|archived|collected|forwarded) (?:\S{1,30} ){0,3}"
    r"(?:reports?|crash(?:es)?|dumps?|traces?|tickets?|alerts?|events?|documents?|batch)\b"
)
"""Words about texts of other programs. A line with the level INFO quotes their troubles, not its own."""
_CLIENT: Final = expression(
    r"(?i)\b(?:requests?|connections?|calls?|error|logins?|attempts?|query|traffic) from\b|\bclient ?[\"=:\d]"
    r"|\bfor (?:\w{1,20} )?\d{1,3}(?:\.\d{1,3}){3}\b|\bfor user\b|\bby (?:the )?client\b|\bremote(?:_addr|_ip)?[=:]"
    r"|\buser(?:name)?[= ][\"']?\w|\b(?:POST|GET) /(?:login|signin)\b"
)
_OF_CLIENTS: Final[frozenset[LineKind | None]] = frozenset({
    "auth failed", "forbidden", "rate limited", "tls", "connection reset", "connection timeout", "clock or token",
    "configuration invalid", "file missing", None,
})  # fmt: skip
_OF_OTHERS: Final = expression(
    r"(?i)\b(?:query|statement|expression|formula|script|search|filter|template)"
    r" (?:\S{0,20}\d\S{0,20} )?(?:of|by|from) (?:the )?\w"
)
"""Words about a text that a client of the program wrote. Its errors are mistakes of this client."""
_ASIDE: Final = expression(
    r"(?i)\b(?:telemetry|metrics?|otlp|otel|opentelemetry|trac(?:er|ing)|statsd|sentry|analytics|pushgateway|jaeger"
    r"|zipkin|newrelic|datadog|apm)\b"
    r"|:(?:4317|4318|8125|8126|9411|14250|14268)\b"
)
"""Words about observing a program, and the ports for this. Its work does not depend on it."""
_SUSPECT: Final = expression(
    r"(?i)\bwaiting (?:for|on|until) |\b(?:failed|unable) (?:to|since|because|with|after)\b|\bfailed: "
)
"""Words of lines without a level or with the level INFO, which count as a warning."""
_UNWELL: Final = expression(
    r"(?i)\b(?:not|no|none|without|never|cannot|can't|unavailable|unknown|unreachable|refus\w+|reject\w+|denied"
    r"|fail\w*|g[ai]v(?:e|ing) up|abort\w*|cancel\w*|block\w*|busy|wait(?:s|ing)?|stuck|stall\w*|pause\w*|postpon\w*"
    r"|defer\w*|park(?:ed|ing)|dropp\w+|lost|miss(?:ed|ing)|overdue|exceed\w*|limit\w*|full|retr(?:y|ies|ying)"
    r"|trying again|conflict\w*|stale|degraded|slow\w*)\b"
    r"|(?<![\w.,:/-])[45]\d\d(?![\w.:%-]| ?(?:ms|s|[KMG]i?B|bytes|rows|items)\b)"
)
"""Words that count as a warning in lines that a program writes in place of its usual ones."""
_REFUSED: Final = expression(
    r"(?i)\b(?:refus(?:ed|es|ing)|reject(?:ed|s|ing)|denied|fail(?:ed|s|ing|ure)|cannot|can't|could not|couldn't|unable"
    r"|unreachable|lost|abort(?:ed|ing)|g[ai]v(?:e|ing) up"
    r"|not (?:sent|delivered|stored|saved|written|processed|booked|accepted|possible))\b"
)
"""Words about work that failed. They count in lines without a level that fill a log."""
_NOTHING: Final = expression(
    r"(?i)\b(?:no|0|zero|without) [a-z]{1,30}(?: [a-z]{1,30})?\b|\b[a-z_-]{1,30}(?: [a-z]{1,30})?\"?[=:] ?\"?0\b"
)
"""Amounts of zero, for example `failed deliveries: 0` and `no errors`."""
_ENTERED: Final = expression(
    r"(?i)\balarm (?:\w+ ){0,3}set\b|\bread-only mode\b|\bmarked (?:as )?(?:read-only|down|failed|offline|dead)\b"
    r"|\bstopp(?:ed|ing) (?:serving|fetcher|accepting|consuming|leading)\b|\bwill be blocked\b|\bpaused until\b"
    r"|\b(?:entered|entering|switched to|switching to) (?:\w+ ){0,2}(?:degraded|safe|maintenance|standby) ?mode\b"
    r"|\brelinquish\w+ (?:primary|leadership)\b|\bcircuit (?:breaker )?(?:\S+ )?(?:is )?(?:now )?open(?:ed)?\b"
)
"""Words about a state that lasts until another line says that it is over."""
_LEFT: Final = expression(
    r"(?i)\bcleared\b|\bresum(?:ed|ing)\b|\brecover(?:ed|y)\b|\bback (?:online|up|to)\b|\bleft\b"
    r"|\b(?:circuit|breaker)\b.{0,60}\b(?:closed|reset|half-?open)\b|\bno longer\b|\bhealthy\b|\bre-?enabled\b"
    r"|\bunblocked\b|\bsucceeded\b"
)
_RETRIED: Final = expression(
    r"(?i)\battempts? \d|\bretry\w*|\btrying again\b|\bwill be (?:retried|tried again)\b|\bretries\b"
)

_FAILED_REQUEST: Final[LineKind] = "upstream 5xx"
"""The kind of records that tell that a request failed, but not why."""
_CHARACTERS: Final = 2_000


def is_aside(record: str) -> bool:
    """Return whether a record is about what only observes the program."""
    return _ASIDE.search(record) is not None


def weight_of(pattern: Pattern, record: str, kind: LineKind | None, *, replaces: bool) -> Weight:
    """Return why a record reports trouble. `replaces` means that the lines are written in place of the usual ones."""
    level = pattern.level
    relayed = level is not None and level < WARNING and _RELAYED.search(record) is not None
    if relayed or _HANDLED.search(record) is not None:
        return "warning" if level is not None and level >= WARNING else "none"
    aside = is_aside(record)
    if kind is not None:
        return "warning" if aside else "status" if kind == _FAILED_REQUEST else "kind"
    if _SERVER_ERROR.search(record) is not None:
        return "none" if reports_success(record) else "status"
    if replaces and _REFUSAL.match(pattern.text):
        return "status"
    if (level if level is not None else pattern.severity - 0.5) >= ERROR:
        return "none" if reports_success(record) else "warning" if aside else "error"
    plain = _NOTHING.sub(" ", record)
    warns = (level is not None and level >= WARNING) or _SUSPECT.search(plain) is not None
    return "warning" if warns or (replaces and _UNWELL.search(plain)) else "none"


def is_of_client(record: str, kind: LineKind | None) -> bool:
    """Return whether a client's mistake can be the reason of a record."""
    if kind == "configuration invalid" and _OF_OTHERS.search(record) is not None:
        return True
    return kind in _OF_CLIENTS and "upstream" not in record and _CLIENT.search(record) is not None


def is_refusal(record: str) -> bool:
    """Return whether a record without a level says in plain words that something did not work."""
    return _REFUSED.search(_NOTHING.sub(" ", record)) is not None and not reports_success(record)


def persists(record: str, last: int, patterns: Iterable[Pattern]) -> bool:
    """Return whether a record reports a state, and no later line of the log reports its end."""
    if _ENTERED.search(record) is None:
        return False
    return not any(_LEFT.search(each.last_line[:_CHARACTERS]) for each in patterns if each.last_number > last)


def always_fails(pattern: Pattern, patterns: Iterable[Pattern]) -> bool:
    """Return whether a pattern is of requests that a server, but no proxy, never answers with another status."""
    status, bar, request = pattern.text.partition("|")
    if not bar or not _SERVER_STATUS.fullmatch(status) or _PROXIED.search(pattern.last_line[:_CHARACTERS]):
        return False
    return not any(_STATUS_BEFORE.sub("", each.text) == request for each in patterns if each.text != pattern.text)


def is_retried(line: str) -> bool:
    """Return whether a line is about one of several attempts."""
    return _RETRIED.search(line[:_CHARACTERS]) is not None


def repairs_of(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """Return the patterns that tell of an attempt that succeeded after others had failed."""
    return tuple(each for each in patterns if is_retried(each.last_line) and reports_success(each.last_line))


def is_telemetry(line: str) -> bool:
    """Return whether a line is about observing the program, which its work does not depend on."""
    return _ASIDE.search(line) is not None
