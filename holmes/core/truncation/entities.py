"""Finds the names and numbers that troubleshooting depends on: pods, images, exit codes, addresses, times, paths.

The search is deterministic. The patterns limit every repetition, so that hostile texts do not make them slow. This
module does not rate the importance of names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

EntityKind: TypeAlias = Literal[
    "pod",
    "resource",
    "image",
    "exit code",
    "HTTP status",
    "error",
    "phrase",
    "reason",
    "address",
    "time",
    "path",
    "setting",
    "quantity",
    "version",
    "id",
    "result",
    "citation",
]
ENTITY_KINDS: tuple[EntityKind, ...] = get_args(EntityKind)

_PIECE_CHARACTERS = 65_536
_TYPES = (
    r"\b(?=[pdsrnchijPDSRNCHIJ])(?:[pP]ods?|[dD]eployments?|deploy|[sS]tateful[sS]ets?|sts|[dD]aemon[sS]ets?|"
    r"[rR]eplica[sS]ets?|[sS]ervices?|svc|[nN]odes?|[nN]amespaces?|ns|[cC]onfig[mM]aps?|[sS]ecrets?|pvc|"
    r"[pP]ersistent[vV]olume[cC]laims?|[cC]ron[jJ]obs?|[jJ]obs?|[iI]ngress|[hH][pP][aA]|[sS]ervice[aA]ccounts?|"
    r"[cC]ontainers?)"
)
_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,120}[a-z0-9])?"
_HYPHENED = r"[a-z0-9]{1,60}-[a-z0-9.-]{0,60}[a-z0-9]"
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_ERRNO = (
    "ECONNREFUSED|ECONNRESET|ECONNABORTED|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|ENOSPC|EACCES|EPERM|ENOENT|"
    "EADDRINUSE|EPIPE|EAI_AGAIN|EMFILE|ENFILE|ENOMEM|EROFS|EIO"
)
_REASONS = (
    "OOMKilled|OOMKilling|CrashLoopBackOff|ImagePullBackOff|ErrImagePull|ErrImageNeverPull|InvalidImageName|"
    "CreateContainerConfigError|CreateContainerError|RunContainerError|ContainerCannotRun|StartError|Evicted|"
    "NotReady|DiskPressure|MemoryPressure|PIDPressure|DeadlineExceeded|BackoffLimitExceeded|ContainerStatusUnknown|"
    "ProgressDeadlineExceeded|MinimumReplicasUnavailable|Unschedulable|Preempted|Unhealthy|ErrImageInspect|"
    "Init:Error|PostStartHookError|PreStopHookError|NetworkUnavailable|Insufficient cpu|Insufficient memory|"
    "(?:Failed|Insufficient|Invalid|Network|Volume|Node|System)[A-Z][A-Za-z]{3,40}"
)
_PHRASES = (
    "connection refused|connection reset|no such host|no route to host|deadline exceeded|permission denied|"
    "no space left on device|i/o timeout|certificate has expired|x509: [a-z ]{5,60}|access denied|"
    "too many open files|too many connections|authentication failed|read-only file system|address already in use|"
    "out of memory|unknown host|broken pipe|quota exceeded|disk full"
)
# Hyphenated words that may follow "deployment" or "node" but are not names.
_PROSE = (
    r"(?:non|re|self|well|so|long|up|in|on|roll|pre|post|still|per|multi|single)-|\d+-|out-of|read-only|"
    r"[a-z]+-(?:wide|level|scoped|related|based|side|specific|only|running|ready|to)\b"
)
_TAG = r":v?\d[\w.-]{0,60}|:latest\b|@sha256:[0-9a-f]{8,64}"
# Pairs of an entity kind and a pattern. The matched group is the entity.
_SOURCES: tuple[tuple[EntityKind, str], ...] = (
    ("pod", rf"(?<![\w.-])([a-z][a-z0-9-]{{0,60}}?-[{_SUFFIX}]{{6,10}}-[{_SUFFIX}]{{5}})(?![\w-])"),
    ("pod", rf"(?m)^(?:{_NAME}[ \t]+)?({_NAME})[ \t]+\d{{1,3}}/\d{{1,3}}[ \t]+[A-Z][\w:]+[ \t]"),
    ("pod", rf"\b[pP]ods?[/ ][\"'`]?(?!{_PROSE})({_NAME}-[a-z0-9.-]{{0,60}}[a-z0-9])"),
    ("resource", rf"{_TYPES}(?:\.[a-z][a-z0-9.]{{0,40}})?/({_NAME})"),
    ("resource", rf"{_TYPES}[ \t]+(?:[\"'`]({_NAME})[\"'`]|(?!{_PROSE})({_HYPHENED}))"),
    ("resource", rf"\b(?:namespace|nodeName|claimName|serviceAccountName|secretName)\"?[ \t]*[:=][ \t]*\"?({_NAME})"),
    ("resource", rf"(?<!\w)(?:-n|--namespace)[ =]({_NAME})"),
    ("resource", rf"\bname\"?:[ \t]*\"?({_HYPHENED})(?![\w-])"),
    ("image", r"\bimage(?:ID)?\"?[ \t]*[:=]?[ \t]*[\"'`]([a-z0-9][\w./:@-]{2,200})"),
    (
        "image",
        rf"(?<![\w./@:\[-])([a-z0-9][a-z0-9._/-]{{1,120}}(?::\d{{2,5}}/[a-z0-9._/-]{{1,120}})?(?:{_TAG}))",
    ),
    (
        "exit code",
        r"(?i)\bexit(?:ed)?[ _]?(?:with )?(?:non-?zero )?(?:exit )?(?:code|status)?\"?[ :=(\t]{1,16}(\d{1,3})\b",
    ),
    (
        "HTTP status",
        r"(?i)\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?:[ _-]?code)?|response|returned|returns)[\"']?[ :=]{1,3}([45]\d\d)\b",
    ),
    (
        "HTTP status",
        r"(?i)\b([45]\d\d) (?:service|bad|gateway|internal|not found|too many|forbidden|unauthorized|conflict)",
    ),
    ("error", rf"\b({_ERRNO}|ORA-\d{{5}}|ERR_[A-Z_]{{3,40}}|SQLSTATE[ =:\[]{{0,3}}[0-9A-Z]{{5}})\b"),
    ("error", r"\b([A-Z][A-Za-z0-9]{2,60}(?:Error|Exception))\b"),
    ("phrase", rf"\b(?=[abcdinoprtuqx])({_PHRASES})\b"),
    ("reason", rf"\b({_REASONS})\b"),
    ("address", r"(?<![\w.])((?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?)(?![\w.]*\d)"),
    ("address", r"(?<![\w.-])([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,6}:\d{2,5})\b"),
    ("address", r"(?<![\w.-])([a-z0-9-]{1,63}\.[a-z0-9-]{1,63}\.svc(?:\.cluster\.local)?)(?![\w:.-])"),
    ("address", r"\bhttps?://([^\s\"'`<>/()\[\]]{3,100})"),
    ("time", r"(?<!\d)(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)(?!\d)"),
    ("path", r"(?<![\w:/.<>)-])((?:/[\w.@+-]{1,80}){1,12})"),
    ("setting", r"(?<![\w$])([A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){1,8})\b"),
    ("setting", r"\b[kK]ey [\"'`]([\w.-]{3,60})[\"'`]"),
    ("quantity", r"(?<![\w.])(\d{1,6}(?:\.\d{1,3})?[KMGT]i)\b"),
    ("version", r"(?<![\w./:-])(v\d{1,4}\.\d{1,4}(?:\.\d{1,5})?(?:-[\w.]{1,30})?)\b"),
    ("id", r"(?<![\w-])([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?![\w-])"),
    ("citation", r"\[\[([0-9a-f]{12,64}:\d{1,9}(?:-\d{1,9})?)\]\]"),
    ("result", r"(?i:\bresult[ :]{1,2}`?)([0-9a-f]{12,64})\b"),
)
_FILE_AND_LINE = expression(r"\.(?:go|py|js|ts|tsx|java|rb|rs|c|cc|cpp|h|kt|scala|php|cs|ya?ml|json|log|conf):\d+$")
_WORDS = frozenset({"default", "name", "null", "none", "true", "false", "string", "status", "error", "running", "all"})


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Entity:
    """A name or number in a text. `value` is the original spelling without quotes."""

    kind: EntityKind
    value: str


def find_entities(piece: str) -> Iterator[tuple[Entity, int]]:
    """Yield every entity of `piece` with its position, grouped by kind. One name can have several kinds."""
    for kind, pattern in _patterns():
        for match in pattern.finditer(piece):
            group = match.lastindex or 0
            value = match[group].rstrip(".,:;-")
            if _is_meaningful(kind, value):
                yield Entity(kind=kind, value=value), match.start(group)


def _is_meaningful(kind: EntityKind, value: str) -> bool:
    """Return whether `value` helps to identify a problem. For example, exit code 0 and source positions do not help."""
    if kind == "exit code":
        return value not in {"0", "00"}
    if kind == "image":
        tag = value.rpartition(":")[2]
        is_version = "/" in value or not tag.isdigit()
        return any(c.isalpha() for c in value.partition(":")[0]) and is_version and not _FILE_AND_LINE.search(value)
    if kind == "address":
        return not _FILE_AND_LINE.search(value) and not value.startswith("0.0.0.0")  # noqa: S104  not a bind address
    if kind == "path":
        return value.count("/") > 1 or len(value) > 4
    return kind == "HTTP status" or (len(value) > 2 and value.casefold() not in _WORDS)


def pieces_of(text: str) -> Iterator[str]:
    """Split `text` into parts of at most 65,536 characters, at line ends if possible."""
    start = 0
    while start < len(text):
        end = min(len(text), start + _PIECE_CHARACTERS)
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end


@cache
def _patterns() -> tuple[tuple[EntityKind, re.Pattern[str]], ...]:
    """Compile the patterns on first use, because most runs never compact."""
    return tuple((kind, re.compile(pattern)) for kind, pattern in _SOURCES)
