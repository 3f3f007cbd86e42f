"""The wrapper that masks secrets in results, the messages, and the log filter."""

from __future__ import annotations

import io
import logging

import pytest

from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.redaction.redactor import RedactingFilter, Redactor, redact_message_off_loop
from holmes.toolsets.wrappers import Redacted
from holmes.values.errors import ToolError
from holmes.values.messages import (
    Image,
    Message,
    SystemMessage,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    UserMessage,
    user_text,
)
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.toolsets import FunctionToolset, tool

REDACTOR = Redactor(b"a key of the tests, 32 bytes long")
IMAGE = Image(data=b"DB_PASSWORD=hunter2", media_type="image/png")
SECRET = "DB_PASSWORD=hunter2"


def redacted(result: ToolResult | Exception) -> Redacted:
    async def body(_: ToolInvocation) -> ToolResult:
        if isinstance(result, Exception):
            raise result
        return result

    return Redacted(FunctionToolset(bodies=((tool("run", "text"), body),)), REDACTOR)


def invocation(text: str = "x") -> ToolInvocation:
    return ToolInvocation(call_id=ToolCallId("1"), tool=tool("run", "text"), arguments={"text": text})


@pytest.mark.row("N13")
async def test_data_error_and_invocation_are_masked_and_images_stay() -> None:
    result = ToolResult(status="error", data=SECRET, error=SECRET, invocation=f"env {SECRET} x", images=(IMAGE,))
    masked = await redacted(result).call(invocation())
    assert "hunter2" not in f"{masked.data}{masked.error}{masked.invocation}"
    assert "DB_PASSWORD=(REDACTED:password:" in masked.data
    assert masked.images == (IMAGE,)
    assert masked.status == "error"


async def test_a_result_without_secrets_is_the_same_object() -> None:
    result = ToolResult(status="success", data="pod/web-1 Running", invocation="kubectl get pods")
    assert await redacted(result).call(invocation()) is result


@pytest.mark.row("N13")
@pytest.mark.row("N13")
@pytest.mark.parametrize("error", [ToolError(f"cannot run with {SECRET}"), OSError("postgres://u:hunter2@db/x")])
async def test_the_error_that_a_tool_raises_is_masked_by_the_executor(error: Exception) -> None:
    executor = ToolExecutor([redacted(error)], mask=REDACTOR.redact)
    result = await executor.run(ToolCall(id=ToolCallId("c1"), name="run", arguments='{"text": "x"}'))
    assert result.status == "error"
    assert "hunter2" not in str(result)
    assert "REDACTED" in str(result.error)


def test_the_description_of_a_call_is_masked() -> None:
    assert "hunter2" not in redacted(ToolResult(status="success")).describe(invocation(SECRET))


@pytest.mark.row("N13")
async def test_messages_of_users_and_tools_are_masked() -> None:
    messages: tuple[Message, ...] = (
        user_text(f"why? {SECRET}"),
        UserMessage(parts=(Text(text="log"), IMAGE, Text(text=SECRET)), kind="attachment"),
        ToolMessage(call_id=ToolCallId("1"), tool_name="run", status="success", parts=(Text(text=SECRET),)),
    )
    for message in messages:
        masked = await redact_message_off_loop(REDACTOR, message)
        assert "hunter2" not in getattr(masked, "text", "hunter2")
        assert await redact_message_off_loop(REDACTOR, masked) is masked


async def test_messages_without_secrets_and_instructions_are_the_same_objects() -> None:
    for message in (user_text("why is shop down?"), SystemMessage(text=SECRET)):
        assert await redact_message_off_loop(REDACTOR, message) is message


@pytest.mark.row("N13")
def test_the_log_filter_masks_message_arguments_and_exception() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter(REDACTOR))
    log = logging.Logger("test")  # noqa: LOG001
    log.addHandler(handler)
    log.warning("starting with %s", SECRET, stack_info=True)
    try:
        raise ValueError(f"bad {SECRET}")  # noqa: TRY301
    except ValueError:
        log.exception("failed for %s", "postgres://u:hunter2@db/x")
    log.warning("nothing secret")
    assert "hunter2" not in stream.getvalue()
    assert "ValueError: bad DB_PASSWORD=(REDACTED" in stream.getvalue()
    assert "nothing secret\n" in stream.getvalue()
