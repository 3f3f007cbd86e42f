"""Sends notifications to Slack. Each incident has one message, which Holmes updates. The thread contains the answers.

This requires a bot token with the scope `chat:write`, and with `files:write` for pictures. Slack has no idempotency
keys, so the metadata of each message contains its key. After an attempt with an unknown outcome, Holmes searches the
existing messages for this key. The search requires the channel id and the scope `channels:history` (`groups:history`
for private channels). Without the id and the scope, a message can appear twice.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.destinations.destination import DeliveryFailed
from holmes.destinations.slack_api import SlackApi, SlackFailed
from holmes.destinations.slack_blocks import replies, root_message
from holmes.destinations.slack_files import post_pictures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from holmes.destinations.destination import IncidentNews
    from holmes.destinations.slack_blocks import SlackMessage
    from holmes.values.json_types import JsonObject

_EVENT_TYPE: Final = "holmes_incident"
_CHANNEL_ID: Final = re.compile(r"[CGD][A-Z0-9]{7,}")
_UNUSABLE_FORM: Final = frozenset(
    {
        "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "invalid_metadata_format",
        "invalid_metadata_schema", "metadata_must_be_sent_from_app", "metadata_too_large",
    }
)  # fmt: skip
"""Error codes for blocks or metadata that Slack rejects. Slack may accept the same message as plain text."""
_ROOT_IS_LOST: Final = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "thread_not_found"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thread:
    """The thread of an incident. `sent` contains the keys of replies that arrived during an unfinished delivery."""

    channel: str
    ts: str
    sent: tuple[str, ...] = ()

    def to_json(self) -> str:
        value: dict[str, object] = {"channel": self.channel, "ts": self.ts}
        return json.dumps({**value, "sent": self.sent} if self.sent else value)


class SlackDestination:
    """Sends notifications to one Slack channel."""

    def __init__(self, api: SlackApi, *, channel: str) -> None:
        self._api = api
        self._name = api.name
        self._channel = channel
        self._channel_id = channel if _CHANNEL_ID.fullmatch(channel) else None

    @property
    def name(self) -> str:
        return self._name

    async def send(self, news: IncidentNews, reference: str | None) -> str | None:
        """Update the root message, and add replies to its thread. See `Destination.send`."""
        thread = _thread_of(reference)
        try:
            thread = await self._with_root(news, thread)
            messages = await asyncio.to_thread(replies, news)
            if messages and news.repeated:
                thread = replace(thread, sent=(*thread.sent, *await self._arrived_replies(thread)))
            for number, message in enumerate(messages):
                key = f"{news.key}#{number}"
                if key not in thread.sent:
                    await self._post(message, key, thread)
                    thread = replace(thread, sent=(*thread.sent, key))
            thread = await self._with_pictures(news, thread)
        except DeliveryFailed as failure:
            failure.reference = thread.to_json() if thread else None
            raise
        return replace(thread, sent=()).to_json()

    async def _with_pictures(self, news: IncidentNews, thread: _Thread) -> _Thread:
        sent = await post_pictures(self._api, news, channel=thread.channel, ts=thread.ts, sent=thread.sent)
        return replace(thread, sent=(*thread.sent, *sent))

    async def _with_root(self, news: IncidentNews, thread: _Thread | None) -> _Thread:
        """Post or update the root message. Returns the thread of this message."""
        message = await asyncio.to_thread(root_message, news)
        key = f"{self._name}/{news.incident_id}"
        if thread is None and news.repeated:
            thread = await self._arrived_root(key, news.opened_at)
        if thread is not None:
            try:
                await self._call("chat.update", {"channel": thread.channel, "ts": thread.ts}, message)
            except SlackFailed as failure:
                if failure.code not in _ROOT_IS_LOST:
                    raise
            else:
                return thread
        return await self._post(message, key, None)

    async def _post(self, message: SlackMessage, key: str, thread: _Thread | None) -> _Thread:
        arguments: dict[str, object] = {"channel": thread.channel if thread else self._channel}
        if thread:
            arguments["thread_ts"] = thread.ts
        quiet = {"unfurl_links": False, "unfurl_media": False}
        metadata = {"metadata": {"event_type": _EVENT_TYPE, "event_payload": {"key": key}}}
        reply = await self._call("chat.postMessage", {**arguments, **quiet, **metadata}, message)
        posted = _Thread(channel=str(reply.get("channel") or self._channel), ts=str(reply.get("ts") or ""))
        if not posted.ts:
            raise SlackFailed(f"{self._name}: Slack's response has no `ts`; check `api_url`", retryable=False)
        self._channel_id = posted.channel
        return posted

    async def _call(self, method: str, arguments: dict[str, object], message: SlackMessage) -> JsonObject:
        """Post or update a message. If Slack rejects the blocks or metadata, send plain text instead."""
        said = {**arguments, "text": message.text, "parse": "none", "link_names": False}
        try:
            return await self._api.write(method, _json({**said, "blocks": message.blocks()}))
        except SlackFailed as failure:
            if failure.code not in _UNUSABLE_FORM:
                raise
        said.pop("metadata", None)
        return await self._api.write(method, _json({**said, "text": message.as_text(), "blocks": ()}))

    async def _arrived_root(self, key: str, opened_at: datetime) -> _Thread | None:
        channel = self._channel_id
        if channel is None:
            return None
        arguments = {"channel": channel, "oldest": str(int(opened_at.timestamp()) - 60)}
        arrived = await self._arrived("conversations.history", arguments)
        return _Thread(channel=channel, ts=arrived[key]) if key in arrived else None

    async def _arrived_replies(self, thread: _Thread) -> tuple[str, ...]:
        arguments = {"channel": thread.channel, "ts": thread.ts}
        return tuple(await self._arrived("conversations.replies", arguments))

    async def _arrived(self, method: str, arguments: dict[str, str]) -> dict[str, str]:
        """Return the timestamps of Holmes' messages by key, or an empty dictionary if they cannot be read."""
        try:
            reply = await self._api.read(method, {**arguments, "limit": "200", "include_all_metadata": "true"})
        except SlackFailed:
            return {}
        return dict(_keys(reply))


def _thread_of(reference: str | None) -> _Thread | None:
    """Parse a reference. Returns None if another version wrote it, and the incident then gets a new root message."""
    try:
        value = json.loads(reference) if reference else {}
        return _Thread(channel=value["channel"], ts=value["ts"], sent=tuple(value.get("sent", ())))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _keys(reply: JsonObject) -> Iterator[tuple[str, str]]:
    messages = reply.get("messages")
    for message in messages if isinstance(messages, list) else ():
        metadata = message.get("metadata") if isinstance(message, dict) else None
        payload = metadata.get("event_payload") if isinstance(metadata, dict) else None
        if isinstance(payload, dict) and isinstance(payload.get("key"), str):
            yield payload["key"], str(message.get("ts"))
        files = message.get("files") if isinstance(message, dict) else None
        for file in files if isinstance(files, list) else ():
            if isinstance(file, dict) and isinstance(file.get("name"), str):
                yield file["name"], str(message.get("ts"))


def _json(value: dict[str, object]) -> JsonObject:
    return value  # type: ignore[return-value]  # callers pass only JSON values
