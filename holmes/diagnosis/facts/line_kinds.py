"""Tells which kind of trouble one record of a log or an event reports.

A record is one line, or a message with its stack. A record that reports no trouble has no kind.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.line_patterns import LINE_PATTERNS, MISSING_SERVICE
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.diagnosis.facts.line_patterns import LineKind

_LONGEST_CHARACTERS: Final = 4_000
_URL: Final = expression(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>\\)\]]*", re.IGNORECASE)
_ACCESS: Final = expression(r"\"(?:[A-Z]{3,7} [^\"]*|- - -)\" (?P<status>\d{1,3})\b(?P<rest>.*)", re.DOTALL)
_METRIC: Final = expression(r"^[a-z_:.][\w:.]*(?:\{.*\})?:? [\d.e+-]+$")
_QUIET: Final = expression(
    r"\bDEBUG\b|(?<!STACK )\bTRACE\b|\b(?:dbug|trce)\b|level=(?:debug|trace)|\[debug\]"
    r"|\"level\": ?(?:\"(?:debug|trace)\"|[12]0\b)|^[DT], \[|\bDeprecat|\"s\":\"D\d|\bFLAG: "
    r"|\[class,load|\[Loaded \S+ from |^--- PASS|^ ?PASS\s|::test_\S+ PASSED|^ok\s+\d+ - "
    r"|^(?:NOTICE|\d\S* \S+ UTC \[\d+\] NOTICE):?"
)
_ECHO: Final = expression(
    r"LOG:  (?:statement|execute)|\tQuery\t| Query\tS|\d Query\t|^Executing \(|^Mongoose: |^Hibernate: "
    r"|(?:^info: [^\n]*\s+|INF\] )Executed DbCommand|INFO sqlalchemy\.engine|^\d{10}\.\d+ \[\d+ \S+\] \""
    r"|\"timed_out\":false,\"_shards\":\{[^}]*\"failed\":0"
)
"""A command or a document of a client, which the program only repeats."""
_INFORMATIVE: Final = expression(
    r"\b(?:INFO|LOG|Note|NOTICE|info)\b[ :\]]|level=info|\"level\": ?(?:\"info\"|30\b)|\[(?:info|notice|Note|System)\]"
    r"|^I\d{4} |\"s\":\"I\"|\.INFO:|^I, \["
)
_WRITTEN_BY_USERS: Final = expression(
    r"(?<![\w.-])\"?(?:q|query|search(?:_?(?:term|text|query))?|terms?|keywords?|phrase|prompt|input|title|subject"
    r"|comment|content|body)\"?(?:=|: ?)\"(?:[^\"\\]|\\.)*\"",
    re.IGNORECASE,
)
"""A quoted value that users of a program write. A record with the level INFO only repeats it."""
_TROUBLE: Final = expression(
    r"\bfail(?:ed|ure|s)?\b|\berror\b|\bunable\b|\bcannot\b|\bcould not\b|\bDenied operation|\brefused because|\bevict"
    r"|ALERT|slow query|deadlock|waiting for \w*Lock|duration: \d{4}|was terminated|not ready|SSL|Out of memory"
    r"|too many|Access denied for|\bPause [A-Z]|relinquish|stepping down|leadership lost|lost leader"
    r"|has been running for|\bpanic\b|in the future|clock (?:leap|jump)|low on memory|limit reached|is full\b"
    r"|blocked for more than|demoting self|high_watermark set|due to (?:\w+ )?load\b|TaskOOM event"
    r"|^\S+ \S+ UTC .{0,60}LOG:  invalid value for"
    r"|duration: [5-9]\d\d\.\d+ ms  statement|\" SERVFAIL |" + MISSING_SERVICE,
    re.IGNORECASE,
)
_RECOVERED: Final = expression(
    r"\bsucce(?:ss|eded|ssful|ssfully)\b|(?<!not )(?<!\[)\brecovered\b|\breconnected\b"
    r"|\bafter \d+ (?:retr|failed|attempt\w*$)"
    r"|\bcleared\b|\brestored\b|\b(?:0|no) (?:errors?|failed|failures?|rejected|denied)\b|errors?[:=]\"?0\b"
    r"|(?:error|err)[:=] ?\"?<?(?:nil|none|null)\b|\bhealth(?:y|check)? (?:ok|after)|\bretrying because\b|, skipping\b"
    r"|\bbecame healthy\b|\bcertificate (?:was )?renewed\b|\bno longer\b",
    re.IGNORECASE,
)
_SEVERE: Final = expression(
    r"\b(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE)\b|level=(?:error|fatal)|\[(?:error|emerg|crit|alert|fatal)\]|^[EF]\d{4} "
    r"|\"s\":\"[EF]\"|\"level\":\"error\"|Exception\b(?! count|s?[=:] ?0\b)|_exception\b"
    r"|\bNOT ready\b|\bfailed (?:to|for|\()"
)
_NAMED: Final = expression(
    r"(?:\bmapped \[|\bretry_?(?: ?policy|on)[:=]|\bmessage =~)"
    r"|\b(?:compiled (?:regex|pattern)|handler (?:for \S+ )?registered|mapped (?:exception|error)|loading class"
    r"|registered (?:\w+ ){0,2}(?:handlers?|exceptions?|errors?)\b|(?:translations|catalog|patterns|messages) loaded"
    r"|release notes|dry[- ]run|alert resolved"
    r"|(?:is|are) (?:raised|thrown) (?:by|when|if)|(?:texts?|articles?|pages?|documents?) about)\b"
    r"|^(?:help|docs|see|changelog): ",
    re.IGNORECASE,
)
"""Words about names of errors: a handler, a rule or a text is about an error that did not occur."""
_LOUD: Final = expression(
    r"\b(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC|WARN(?:ING)?)\b|\b[Ee]rror: |level\"?[:=]\"?(?:error|fatal|warn)"
    r"|\[(?:error|emerg|crit|alert|fatal|warn(?:ing)?)\]|^[EFW]\d{4} |\"s\":\"[EFW]\"|^(?:fail|crit|warn): "
)
_WARNING_BELOW: Final = expression(
    r"\n(?:[WEF]\d{4} |\S.{0,60}(?:\[(?:warning|warn|error)\]|\b(?:WARN(?:ING)?|ERROR)\b))"
)
"""The level of a later line of a record whose first line is informative."""
_HELP: Final = expression(
    r"^ {0,4}(?:usage(?: of \S+:$|: *$|: +[^\s:]+(?: [^\s:]+){0,3} ?[\[<(-])"
    r"|(?:exit|return|error) (?:codes|statuses):)",
    re.IGNORECASE | re.MULTILINE,
)
_PASSED: Final = expression(r"^\s*[\u2713\u2714] .*|^ +--?[A-Za-z][\w-]*(?:[ =,]\S+)? {2,}\S.*", re.MULTILINE)
"""A test that passed, or the description of an option."""
_ERROR_IN_HELP: Final = expression(r"^\S.*\berror: .*", re.IGNORECASE | re.MULTILINE)
_STEMS: Final = (
    "error", "fail", "unable", "refused", "denied", "invalid", "unknown", "timed", "timeout", "exceed", "forbid",
    "auth", "expire", "exhaust", "reset", "cannot", "crash", "panic", "unavail", "limit", "429", "50", "slow", "fatal",
    "deadlock", "memory", "kill", "full", "reject", "gone", "signal", "missing", "bad", "lock", "lost", "already",
    "could", "cert", "ssl", "tls", "eacc", "econn", "eno", "emfile", "exception", "pool", "pressure", "not ", "no ",
)  # fmt: skip
_NO_DIGITS: Final = str.maketrans("123456789", "000000000")
_STATUS: Final = expression(r"\b(?:4[02][139]|50[0-4]|111)\b")
_CAUSED: Final = expression(r"^\s*(?:Caused by: | ?---> |\[cause\]: )(.*)", re.MULTILINE)
_THROWN: Final = expression(r"^(?:[A-Za-z_]\w*(?:\.|::|\\))*[A-Z]\w*(?:Error|Exception)\b: .*", re.MULTILINE)
"""The exception of a stack trace below the line of the log that reports it."""
_WRAPPED: Final = expression(r"^(?:The above exception was the direct|During handling of the above)", re.MULTILINE)
_CHAIN: Final = expression(r"^\s+\d{1,2}: (.+)", re.MULTILINE)
"""A cause in a list below `Caused by:`, as Rust writes it."""
CREDENTIALS: Final[frozenset[LineKind | None]] = frozenset({"auth failed", "clock or token", "forbidden", "tls"})
"""Kinds of which an old password, key or certificate can be the reason."""
_OF_CUSTOMERS: Final = expression(
    r"(?<![\w./-])(?:recipients?|addressees?|consignees?|guests?|passengers?|vouchers?|coupons?"
    r"|(?:upload|attachment) \S{1,40} (?:was )?(?:rejected|refused))(?=[ ':,])",
    re.IGNORECASE,
)
"""Persons outside of the system and what belongs to them, which programs speak of while they work as they should."""
_TOLD_OF_CUSTOMERS: Final = frozenset({"dependency unavailable", "clock or token", "queue full", "quota"})
"""Kinds whose words also tell what customers do, have or lack: "the recipient's mailbox is full"."""
_STATUS_ONLY: Final = expression(
    r"[^a-z]*(?:status|http|code|error)?[^a-z]*(?:code|response code)?[^a-z]*429", re.IGNORECASE
)
_SHORTAGES: Final = frozenset({"queue full", "disk full", "out of memory"})
"""Kinds that a server also answers with the status 429. Its words decide before the status."""
_NEAR_CHARACTERS: Final = 40
_FRAME: Final = expression(r"^\s+(?:at |from |\d+: |File \"|\^|~|\|)|^\s*\.{3} \d+ more|^\t", re.MULTILINE)


def kind_of(record: str) -> LineKind | None:
    """Return the kind of trouble that the record reports, the most specific first, or None.

    The last cause of a stack trace decides before its headings. URLs and quoted requests never decide.
    """
    return _kind_of(record[:_LONGEST_CHARACTERS]) if may_report_trouble(record) else None


@lru_cache(maxsize=16_384)
def _kind_of(record: str) -> LineKind | None:
    if any(each.search(record) is not None for each in (_METRIC, _QUIET, _ECHO)):
        return None
    if _INFORMATIVE.search(record) is not None:
        record = _WRITTEN_BY_USERS.sub("", record)
    if _only_names(record):
        return None
    record = _without_help(record)
    access = _ACCESS.search(record)
    if access is not None and "[error]" not in record:
        return _of_access(access)
    return (
        next((kind for kind in map(_first, _reasons(record)) if kind is not None), None) if _troubled(record) else None
    )


def _only_names(record: str) -> bool:
    """Return whether the record names errors that handlers or texts are about, and reports none."""
    return _NAMED.search(record) is not None and _LOUD.search(record) is None


def _without_help(record: str) -> str:
    """Return the record without tests that passed and the help text of a program. Both name errors by design."""
    record = _PASSED.sub("", record)
    start = _HELP.search(record)
    if start is None:
        return record
    return "\n".join([record[: start.start()], *_ERROR_IN_HELP.findall(record, start.start())])


def _troubled(record: str) -> bool:
    """Return whether the level of a record and its words about success allow that it reports trouble."""
    if _SEVERE.search(record) is not None:
        return True
    if _RECOVERED.search(record) is not None:
        return False
    if _INFORMATIVE.search(record) is None or ("\n" in record and _WARNING_BELOW.search(record)):
        return True
    return _TROUBLE.search(_URL.sub(" ", record)) is not None


def _of_access(access: re.Match[str]) -> LineKind | None:
    """Return the kind for an access log line from its status and the proxy's own words after it."""
    status = int(access["status"])
    if status < 400 and status != 0:
        return None
    written = access["rest"] if status in {0, 401, 403, 429} or status >= 500 else ""
    kind = _first(written)
    return kind or ("upstream 5xx" if 500 <= status < 600 else None)


def _reasons(record: str) -> Iterator[str]:
    """Yield the last cause of a stack trace, the other causes, and then the record without URLs and frames."""
    plain = _URL.sub(" ", record.replace('\\"', '"'))
    if "\n" in record:
        yield from reversed(_CHAIN.findall(plain.partition("\nCaused by:\n")[2]))
        yield from (match[1] for match in reversed(list(_CAUSED.finditer(plain))))
        thrown = _THROWN.findall(plain.partition("\n")[2])
        yield from thrown if _WRAPPED.search(plain) else reversed(thrown)
        plain = "\n".join(line for line in plain.split("\n") if not _FRAME.match(line))
    yield plain


def _first(written: str) -> LineKind | None:
    found = _deciding(written)
    return found[0] if found is not None else None


def _deciding(written: str) -> tuple[LineKind, re.Match[str]] | None:
    lowered = written.lower()
    candidates = {index for word, indexes in _BY_WORD.items() if word in lowered for index in indexes}
    rejected: tuple[LineKind, re.Match[str]] | None = None
    for index in sorted(candidates):
        literal, pattern, kind = _EXPRESSIONS[index]
        match = pattern.search(written) if literal in lowered else None
        if match is None or (kind in _TOLD_OF_CUSTOMERS and _is_of_customers(written, match)):
            continue
        if kind == "rate limited" and _STATUS_ONLY.fullmatch(match[0]):
            rejected = rejected or (kind, match)
        elif rejected is None or kind in _SHORTAGES:
            return kind, match
    return rejected


def _is_of_customers(written: str, match: re.Match[str]) -> bool:
    """Return whether the words just before the decisive ones, or inside of them, name a person or his things."""
    return _OF_CUSTOMERS.search(written, max(0, match.start() - _NEAR_CHARACTERS), match.end()) is not None


def decisive_end(record: str) -> int:
    """Return the position after the words that decide the kind of the record, or 0 if it has no kind."""
    found = _deciding(record[:_LONGEST_CHARACTERS]) if kind_of(record) is not None else None
    return found[1].end() if found is not None else 0


_TOKEN: Final = expression(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def alternatives(pattern: str) -> Iterator[str]:
    """Yield the alternatives of an expression that are outside of all groups and character classes."""
    depth, start = 0, 0
    for match in _TOKEN.finditer(pattern):
        depth += (match[0] == "(") - (match[0] == ")")
        if match[0] == "|" and depth == 0:
            yield pattern[start : match.start()]
            start = match.end()
    yield pattern[start:]


def _required(alternative: str) -> str:
    """Return the longest text that each match of the alternative contains, in lower case, or an empty string."""
    flat = re.sub(r"\\([\[\]().{}\"'+*?$^|])", lambda match: "\x00" if match[1] not in "\"'" else match[1], alternative)
    flat = re.sub(r"\[\^?\]?(?:\\.|[^\]\\])*\](?:[*+?]|\{[^}]*\})?", "\x00", flat)
    while "(" in flat and (shorter := re.sub(r"\([^()]*\)(?:[*+?]|\{[^}]*\})?", "\x00", flat)) != flat:
        flat = shorter
    flat = re.sub(r"\\[A-Za-z](?:[*+?]|\{[^}]*\})?|.[?*]|.\{[^}]*\}|[.^$]\+?", "\x00", flat)
    return max(re.split(r"[\x00+]", flat), key=len).lower()


_EXPRESSIONS: Final = tuple(
    (_required(alternative), expression(alternative, re.IGNORECASE), kind)
    for kind, patterns in LINE_PATTERNS.items()
    for pattern in patterns
    for alternative in alternatives(pattern)
)


def expressions() -> tuple[tuple[str, re.Pattern[str], LineKind], ...]:
    """Return all expressions in their order, each with a text in lower case that all its matches contain."""
    return _EXPRESSIONS


def _by_word() -> dict[str, list[int]]:
    """Group the expressions by a word that each of their matches contains."""
    grouped: dict[str, list[int]] = {}
    for index, (literal, _, _) in enumerate(_EXPRESSIONS):
        word = next((stem for stem in _STEMS if stem in literal), literal)
        grouped.setdefault(word, []).append(index)
    return grouped


_BY_WORD: Final = _by_word()


def may_report_trouble(record: str) -> bool:
    """Return whether the record contains one of the texts without which no expression matches. Cheap."""
    return any(map(record.lower().__contains__, _BY_WORD))


def reports_success(record: str) -> bool:
    """Return whether the record is a metric, repeats other text, or tells of success and nothing more severe."""
    if any(each.search(record) is not None for each in (_METRIC, _ECHO)) or not _without_help(record):
        return True
    if _only_names(record):
        return True
    return _RECOVERED.search(record) is not None and not _SEVERE.search(record)


def kinds_of(records: Iterable[str]) -> Iterator[LineKind | None]:
    """Yield the kind of each record. Records that differ only in numbers are classified once."""
    known: dict[tuple[str, str], LineKind | None] = {}
    for record in records:
        status = _STATUS.search(record)
        template = record[:_LONGEST_CHARACTERS].translate(_NO_DIGITS), status[0] if status is not None else ""
        if template not in known:
            known[template] = kind_of(record)
        yield known[template]
