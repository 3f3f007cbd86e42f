"""Tells whether lines of a log are about a call of another program, or about the program that writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.triage.log_troubles import Trouble

OWN: Final[frozenset[LineKind | None]] = frozenset({
    "crash", "module missing", "configuration missing", "configuration invalid", "file missing", "port in use",
    "architecture", "read only file system",
})  # fmt: skip
"""Kinds that speak of the workload itself, unless the lines name a Service."""
_CALL: Final = expression(
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?:(?i:"
    r"request(?:s|ed|ing)?|respon(?:ses?|d(?:s|ed|ing)?)|answer(?:s|ed|ing)?|repl(?:y|ies|ied)|calling|calls? to|g?rpc"
    r"|quer(?:y|ies|ied|ying)|fetch(?:e[ds]|ing)?|lookups?|upstreams?|backends?|remote|peers?|servers?"
    r"|(?:re|dis)?connect(?:s|ed|ing|ions?)?|time-?outs?|tim(?:ed|ing) out|deadlines?|wait(?:s|ed|ing)?|slow"
    r"|retr(?:y|ies|ied|ying)|g(?:iving|ave) up|sen[dt]|sends|sending|receiv(?:e[ds]?|ing)|publish(?:e[ds]|ing)?"
    r"|consum(?:e[ds]?|ing)|queues?|queued|stor(?:e[ds]?|ing)|write|writing|written|commit(?:s|ted|ting)?|insert(?:s|ed|ing)?"
    r"|transactions?|leases?|(?:dead)?lock(?:s|ed|ing)?|sql|redis|caches?|refus(?:e[ds]?|al)|reject(?:s|ed|ions?)?"
    r"|den(?:y|ied|ies)|(?:un|not )available|exceeded)"
    r"|SELECT|UPDATE|DELETE)(?![a-z]|_?[Ii]d\b)"
    r"|://|(?i:\b(?:status|code|answered|returned|got|http(?:/[\d.]+)?)|->)\W{0,3}[45]\d\d\b"
)
"""Words about a call of another program, its answer, or what is kept there: data, a queue or a lock.

They are whole words or parts of a name such as `ReadTimeoutError`, so `runtime`, `most recent call last` and the field
`request_id` say nothing.
"""


def speaks_of_call(trouble: Trouble) -> bool:
    """Return whether the lines can be about another server. An error that a program finds in its own data is not."""
    group = trouble.group
    own = (group.kind is None and group.weight == "error" and not group.detail) or group.kind in OWN
    return not own or _CALL.search(group.record) is not None
