"""Conversations with results in a real store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holmes.evidence import CitationVerifier, marker_of
from holmes.stores.result_store import FileResultStore
from holmes.values.events import Citation
from holmes.values.messages import AssistantMessage, Message, ResultId, Text, ToolCallId, ToolMessage
from holmes.values.tools import result_label
from tests.support.counting_model import tool_call

PODS = (
    "NAME             READY   STATUS             RESTARTS      AGE\n"
    "checkout-7f9c    0/1     CrashLoopBackOff   5 (2m ago)    10m\n"
    "payment-55d4     1/1     Running            0             3d\n"
    "inventory-9b2    0/1     OOMKilled          2 (1m ago)    10m\n"
)


@dataclass(kw_only=True)
class Conversation:
    """Messages and the store of their results."""

    store: FileResultStore
    messages: list[Message] = field(default_factory=list)

    @classmethod
    def below(cls, folder: Path) -> Conversation:
        return cls(store=FileResultStore(folder / "results"))

    async def result(self, text: str, media_type: str = "text/plain") -> ResultId:
        """A round that returned `text`."""
        return await self.bytes_result(text.encode(), media_type)

    async def bytes_result(self, content: bytes, media_type: str = "text/plain") -> ResultId:
        call = tool_call(f"call-{len(self.messages)}")
        stored = await self.store.put(content, tool_name=call.name, call_id=call.id, media_type=media_type)
        parts = (Text(text=content.decode("utf-8", "replace")), Text(text=result_label((stored,))))
        message = ToolMessage(
            call_id=ToolCallId(call.id), tool_name=call.name, status="success", parts=parts, stored=(stored,)
        )
        self.messages += [AssistantMessage(text="", tool_calls=(call,)), message]
        return stored.id

    def verifier(self) -> CitationVerifier:
        """A verifier that knows the results of this conversation."""
        verifier = CitationVerifier(self.store)
        verifier.note(self.messages)
        return verifier


def shown(citations: Sequence[Citation]) -> list[str]:
    """The markers of `citations`."""
    return [str(marker_of(citation)) for citation in citations]
