"""What the Slack server of the tests keeps, refuses and says: values for `slack_server`, and the limits of messages.

The rules are those of Slack's documentation of `chat.postMessage`, `chat.update` and Block Kit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue

LONGEST_TEXT_CHARACTERS: Final = 40_000
MOST_BLOCKS: Final = 50
LONGEST_BLOCK_TEXT: Final[Mapping[str, int]] = {"section": 3_000, "header": 150}
TEXT_TYPES: Final[Mapping[str, tuple[str, ...]]] = {"section": ("mrkdwn", "plain_text"), "header": ("plain_text",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackFile:
    """A file of a message. `content` is empty until it was uploaded."""

    id: str
    name: str
    length: int
    alt: str = ""
    title: str = ""
    content: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackMessage:
    """A message as it stands now; `updates` counts how often it was changed, `thread_ts` is that of its parent."""

    channel: str
    ts: str
    text: str
    blocks: tuple[JsonObject, ...] = ()
    thread_ts: str | None = None
    updates: int = 0
    files: tuple[SlackFile, ...] = ()
    arguments: JsonObject

    @property
    def shown(self) -> str:
        """Everything that people can read in it: its blocks, else its text."""
        return "\n".join(_texts(self.blocks)) if self.blocks else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackCall:
    """What came in. `at_seconds` is on the monotonic clock; header names are lower case."""

    method: str
    headers: Mapping[str, str]
    arguments: JsonObject
    at_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What happens to one call. `error` is Slack's name of it; `cut` ends the connection instead of an answer.

    `after_it_happened` carries the call out first: the client only never hears of it. Everything else is refused.
    """

    error: str = "internal_error"
    status: int = 200
    retry_after_seconds: int | None = None
    body: str | None = None
    delay_seconds: float = 0.0
    cut: bool = False
    after_it_happened: bool = False


def rate_limited(retry_after_seconds: int) -> Trouble:
    """As Slack says that there were too many messages."""
    return Trouble(error="ratelimited", status=429, retry_after_seconds=retry_after_seconds)


def fault_of(text: str, blocks: Sequence[JsonObject]) -> str | None:
    """Slack's error for a message with this content, or None when there is nothing wrong with it."""
    if not text and not blocks:
        return "no_text"
    if len(text) > LONGEST_TEXT_CHARACTERS:
        return "msg_too_long"
    if len(blocks) > MOST_BLOCKS or any(_is_bad(block) for block in blocks):
        return "invalid_blocks"
    return None


def _is_bad(block: JsonObject) -> bool:
    kind, text = block.get("type"), block.get("text")
    if not isinstance(kind, str):
        return True
    if kind not in LONGEST_BLOCK_TEXT:
        return False
    if kind == "section" and text is None:
        return not block.get("fields")
    if not isinstance(text, Mapping) or text.get("type") not in TEXT_TYPES[kind]:
        return True
    return not 0 < len(str(text.get("text", ""))) <= LONGEST_BLOCK_TEXT[kind]


def _texts(value: JsonValue) -> list[str]:
    if isinstance(value, Mapping):
        own = value.get("text")
        found = [own] if isinstance(own, str) else []
        return found + [text for part in value.values() for text in _texts(part)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [text for part in value for text in _texts(part)]
    return []
