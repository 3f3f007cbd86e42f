"""Parses the payloads of Alertmanager: webhook payloads (version 4) and the list from `/api/v2/alerts`.

All fields are optional, unknown fields are ignored, and values of the wrong type are converted to strings. A payload in
another format is rejected with `AlertPayloadError`. Secrets are masked before any text is used or cut. Every text is
limited in length and contains neither NUL characters nor lone surrogates.

An alert without a fingerprint gets the fingerprint that Alertmanager computes: 64-bit FNV-1a over the label names and
values, sorted by name, each followed by the byte 0xff. Alertmanager ignores labels without a value.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from holmes.investigations.records.values import Alert, AlertGroup
from holmes.kubernetes.object_masking import ObjectMasker
from holmes.redaction.views import strip_escape_sequences
from holmes.triage.alert_subjects import bounded_key
from holmes.values.errors import HolmesError
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from holmes.investigations.records.values import AlertStatus
    from holmes.values.json_types import JsonObject, JsonValue

    _Reader: TypeAlias = Callable[[JsonValue, datetime], AlertGroup]

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = (1 << 64) - 1
_SEPARATOR: Final = b"\xff"


def fingerprint_of(labels: Mapping[str, str]) -> str:
    """Compute the fingerprint of an alert as 16 hexadecimal digits."""
    named = sorted((name.encode(), value.encode()) for name, value in labels.items() if value)
    state = _OFFSET
    for name, value in named:
        for byte in b"".join((name, _SEPARATOR, value, _SEPARATOR)):
            state = ((state ^ byte) * _PRIME) & _MASK
    return f"{state:016x}"


MAX_ALERTS: Final = 10_000
_MOST_LABELS: Final = 100
_MOST_NAME_CHARACTERS: Final = 200
_MOST_VALUE_CHARACTERS: Final = 1_000
_MOST_ANNOTATION_CHARACTERS: Final = 4_000
_MOST_URL_CHARACTERS: Final = 2_000
_FIRST_YEAR: Final = 1970
_STATUSES: Final[Mapping[str, AlertStatus]] = {
    "firing": "firing",
    "active": "firing",
    "alerting": "firing",
    "resolved": "resolved",
    "ok": "resolved",
}
_SUPPRESSED: Final = "suppressed"


class AlertPayloadError(HolmesError):
    """Raised if a payload is not in Alertmanager's format."""

    exit_code = 2


def parse_alertmanager(
    body: bytes, now: datetime | None = None, *, mask: Callable[[str], str] = strip_escape_sequences
) -> AlertGroup:
    """Parse a webhook payload. Raises `AlertPayloadError`.

    The key of the group is empty if the payload has no group key and no group labels. `mask` masks the secrets in a
    string.
    """
    return _guarded(_group, body, now, mask)


def parse_alerts(
    body: bytes, now: datetime | None = None, *, mask: Callable[[str], str] = strip_escape_sequences
) -> AlertGroup:
    """Parse a webhook payload, or the list from `/api/v2/alerts`. Raises `AlertPayloadError`.

    Silenced and inhibited alerts are omitted.
    """
    return _guarded(_list_or_group, body, now, mask)


def _guarded(read: _Reader, body: bytes, now: datetime | None, mask: Callable[[str], str]) -> AlertGroup:
    try:
        return read(ObjectMasker(mask, mask_names=True).masked(json.loads(body)), now or datetime.now(UTC))
    except RecursionError:
        raise AlertPayloadError("the payload is nested too deeply") from None
    except ValueError as error:
        reason = str(error).splitlines()[0][:100]
        raise AlertPayloadError(f"the payload is not valid JSON: {reason}") from None


def _list_or_group(content: JsonValue, now: datetime) -> AlertGroup:
    if isinstance(content, list):
        return AlertGroup(key="", alerts=_alerts(content, "", now))
    return _group(content, now)


def _group(content: JsonValue, now: datetime) -> AlertGroup:
    if not isinstance(content, dict):
        raise AlertPayloadError("the payload is not a JSON object; expected a webhook payload of Alertmanager")
    sent = content.get("alerts")
    if not isinstance(sent, list):
        raise AlertPayloadError("the payload has no 'alerts' list; expected a webhook payload of Alertmanager")
    receiver = _text(content.get("receiver"), _MOST_NAME_CHARACTERS)
    return AlertGroup(
        key=_group_key(content, receiver),
        alerts=_alerts(sent, _status_word(content.get("status")), now),
        receiver=receiver,
        common_labels=_texts(content.get("commonLabels"), _MOST_VALUE_CHARACTERS),
        external_url=_address(content.get("externalURL")),
        truncated=_count(content.get("truncatedAlerts")),
    )


def _group_key(content: JsonObject, receiver: str) -> str:
    """Return the group key of the payload, or else a key derived from the group labels.

    A long key is shortened, so that databases can index it.
    """
    key = _text(content.get("groupKey"))
    if not key:
        labels = _texts(content.get("groupLabels"), _MOST_VALUE_CHARACTERS)
        key = f"{receiver}:{json.dumps(labels, sort_keys=True, ensure_ascii=False)}" if labels else ""
    return bounded_key(key)


def _alerts(sent: Sequence[JsonValue], status: str, now: datetime) -> tuple[Alert, ...]:
    if len(sent) > MAX_ALERTS:
        raise AlertPayloadError(f"the payload has {len(sent)} alerts; the maximum is {MAX_ALERTS}")
    return tuple(_alert(each, status, now) for each in sent if isinstance(each, dict) and not _is_quiet(each))


def _is_quiet(sent: JsonObject) -> bool:
    return _status_word(sent.get("status")) == _SUPPRESSED


def _alert(sent: JsonObject, group_status: str, now: datetime) -> Alert:
    ends_at = _moment(sent.get("endsAt"))
    whole = _texts(sent.get("labels"), None)
    labels = {name: shortened(value, _MOST_VALUE_CHARACTERS, mark="") for name, value in whole.items()}
    return Alert(
        fingerprint=_fingerprint(sent.get("fingerprint"), whole),
        status=_status(_status_word(sent.get("status")) or group_status, ends_at, now),
        labels=labels,
        annotations=_texts(sent.get("annotations"), _MOST_ANNOTATION_CHARACTERS),
        starts_at=_moment(sent.get("startsAt")),
        ends_at=ends_at,
        generator_url=_address(sent.get("generatorURL")),
    )


def _fingerprint(sent: JsonValue, labels: Mapping[str, str]) -> str:
    text = _text(sent)
    if len(text) > _MOST_NAME_CHARACTERS:
        return hashlib.sha256(text.encode()).hexdigest()
    return text or fingerprint_of(labels)


def _status_word(sent: JsonValue) -> str:
    """Read the status, for example `firing`. The Alertmanager API sends it as an object: `{"state": "active"}`."""
    word = sent.get("state") if isinstance(sent, dict) else sent
    return word.strip().lower() if isinstance(word, str) else ""


def _status(word: str, ends_at: datetime | None, now: datetime) -> AlertStatus:
    said = _STATUSES.get(word)
    if said is not None:
        return said
    return "resolved" if ends_at is not None and ends_at <= now else "firing"


def _texts(sent: JsonValue, most_characters: int | None) -> dict[str, str]:
    """Read labels or annotations as strings, without empty values."""
    if not isinstance(sent, dict):
        return {}
    texts: dict[str, str] = {}
    for name, value in sent.items():
        text = _text(value, most_characters)
        spelled = _text(name, _MOST_NAME_CHARACTERS)
        if spelled and text and len(texts) < _MOST_LABELS:
            texts[spelled] = text
    return texts


def _text(value: JsonValue, most_characters: int | None = None) -> str:
    """Convert a value to a string that every database can store."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # replaces lone surrogates, which JSON allows
    text = text.replace("\0", "")
    return text if most_characters is None else shortened(text, most_characters, mark="")


def _moment(sent: JsonValue) -> datetime | None:
    """Parse a time that Go wrote. Returns None for a missing time, which Go writes as the year 1."""
    if not isinstance(sent, str):
        return None
    try:
        at = datetime.fromisoformat(sent.strip())
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if at.year >= _FIRST_YEAR else None


def _address(sent: JsonValue) -> str | None:
    """Return an HTTP or HTTPS URL, which web pages link to. Returns None for any other value."""
    text = _text(sent).strip()
    if not text.startswith(("http://", "https://")):
        return None
    return shortened(text, _MOST_URL_CHARACTERS, mark="")


def _count(sent: JsonValue) -> int:
    return sent if isinstance(sent, int) and not isinstance(sent, bool) and 0 < sent < 1_000_000_000 else 0
