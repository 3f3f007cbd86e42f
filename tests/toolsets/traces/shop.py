"""A shop whose requests are traced: 9 fast ones, 3 slow ones, and one that fails, as OTLP writes them.

A slow request has 12 queries instead of 1, each slower and on another pod. The mail is sent later, by a message.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.values.json_types import JsonObject, JsonValue

BEGAN_MS: Final = 1_767_607_200_000
"""2026-01-05T10:00:00Z."""
RANGE: Final = {"since": "2026-01-05T09:55:00Z", "until": "2026-01-05T10:15:00Z"}
FAST, SLOW = 9, 3
PODS: Final = {"frontend": "frontend-1", "checkout": "checkout-1", "payment": "payment-1", "mail": "mail-1"}
KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One span: `kind` is one of `KINDS`, times are in milliseconds after the beginning of its trace."""

    name: str
    service: str
    kind: str
    start: int
    end: int
    parent: int | None = None
    error: str = ""
    pod: str = ""
    attributes: Mapping[str, str | int] = field(default_factory=dict)


def trace_id(number: int) -> str:
    """Return the id of a request: the fast ones come first, then the slow ones, then the failed one."""
    return f"{number:032x}".replace("0", "a", 1)


def request(number: int) -> list[Sent]:
    """Return the spans of a request, each with the position of its parent."""
    slow, fails = FAST <= number < FAST + SLOW, number == FAST + SLOW
    queries, length, pod = (12, 98, "db-2") if slow else (1, 20 + number % 5, "db-1")
    paid = 30 + queries * (length + 2)
    charged = 900 if fails else 40
    end = paid + charged + 20
    spans = [
        Sent(name="GET /checkout", service="frontend", kind="server", start=0, end=end + 10),
        Sent(name="POST /pay", service="frontend", kind="client", start=5, end=end + 5, parent=0),
        Sent(
            name="POST /pay",
            service="checkout",
            kind="server",
            start=10,
            end=end,
            parent=1,
            error="payment failed" if fails else "",
            attributes={"http.response.status_code": 502 if fails else 200},
        ),
    ]
    for place in range(queries):
        begin = 25 + place * (length + 2)
        spans.append(
            Sent(
                name="SELECT items",
                service="db",
                kind="server",
                start=begin,
                end=begin + length,
                parent=2,
                pod=pod,
                attributes={"db.query.text": "SELECT price FROM items WHERE id = ?"},
            )
        )
    refused = "card declined by bank\nat charge (pay.go:17)" if fails else ""
    spans += [
        Sent(name="charge", service="payment", kind="server", start=paid, end=paid + charged, parent=2, error=refused),
        Sent(name="send receipt", service="mail", kind="consumer", start=end - 5, end=end + 4_000, parent=2),
    ]
    return spans


def requests() -> Iterator[tuple[str, int, list[Sent]]]:
    """Return the id, the beginning in milliseconds since 1970, and the spans of each request."""
    for number in range(FAST + SLOW + 1):
        yield trace_id(number), BEGAN_MS + number * 10_000, request(number)


def otlp(identity: str, began_ms: int, sent: Sequence[Sent]) -> JsonObject:
    """Return a request of OTLP in JSON with the spans of one trace."""
    by_resource: dict[tuple[str, str], list[JsonValue]] = defaultdict(list)
    for place, each in enumerate(sent):
        pod = each.pod or PODS.get(each.service, "db-1")
        by_resource[each.service, pod].append(_span(identity, began_ms, place, each))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_pair("service.name", service), _pair("k8s.pod.name", pod)]},
                "scopeSpans": [{"scope": {"name": "shop"}, "spans": spans}],
            }
            for (service, pod), spans in by_resource.items()
        ]
    }


def span_id(identity: str, place: int) -> str:
    return f"{int(identity[-8:], 16) + 1:08x}{place + 1:08x}"


def _span(identity: str, began_ms: int, place: int, sent: Sent) -> JsonValue:
    return {
        "traceId": identity,
        "spanId": span_id(identity, place),
        "parentSpanId": "" if sent.parent is None else span_id(identity, sent.parent),
        "name": sent.name,
        "kind": KINDS.index(sent.kind),
        "startTimeUnixNano": str((began_ms + sent.start) * 1_000_000),
        "endTimeUnixNano": str((began_ms + sent.end) * 1_000_000),
        "attributes": [_pair(name, value) for name, value in sent.attributes.items()],
        "status": {"code": 2, "message": sent.error} if sent.error else {},
    }


def _pair(name: str, value: str | int) -> JsonValue:
    return {"key": name, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
