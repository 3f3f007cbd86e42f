"""The Slack server of the tests with a history that can be read, as a token with `channels:history` may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.slack_server import SlackServer, Trouble

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue
    from tests.support.slack_messages import SlackCall


class Workspace(SlackServer):
    """Answers `conversations.history` and `conversations.replies`; without `history` the scope for it is missing."""

    def __init__(self, *, history: bool = True) -> None:
        super().__init__()
        self._history = history
        self._metadata: dict[str, JsonValue] = {}
        self._troubled: dict[int, Trouble] = {}

    def trouble_at(self, number: int, trouble: Trouble) -> None:
        """Let the call with this number, from 1, have a trouble."""
        self._troubled[number] = trouble

    def _receive(self, call: SlackCall) -> tuple[JsonObject, Trouble | None]:
        if trouble := self._troubled.pop(len(self.calls) + 1, None):
            self.trouble(trouble)
        return super()._receive(call)

    def _answer(self, call: SlackCall) -> JsonObject:
        if not call.method.startswith("conversations."):
            answer = super()._answer(call)
            if call.method == "chat.postMessage" and answer["ok"]:
                self._metadata[str(answer["ts"])] = call.arguments.get("metadata")
            return answer
        if not self._history:
            return {"ok": False, "error": "missing_scope", "needed": "channels:history"}
        assert call.arguments["channel"] in self._channels.values()  # names are refused
        parent = call.arguments.get("ts")
        messages = [
            {
                "ts": message.ts,
                "text": message.text,
                "metadata": self._metadata.get(message.ts),
                "files": [{"id": file.id, "name": file.name} for file in message.files],
            }
            for message in self._messages.values()
            if message.channel == call.arguments["channel"] and parent in {message.thread_ts, message.ts}
        ]
        return {"ok": True, "messages": [*messages, {"ts": "1.1", "text": "of a person"}], "has_more": False}
