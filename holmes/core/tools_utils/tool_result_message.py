"""What the model reads of a tool's result. Called by the loop, before the size of the result is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.messages import Part, Text, ToolMessage

if TYPE_CHECKING:
    from holmes.values.messages import ToolCall
    from holmes.values.tools import ToolResult


def tool_result_message(call: ToolCall, result: ToolResult) -> ToolMessage:
    """The message for `call`: the plain output on success, else one line that says what happened, then the output."""
    parts: tuple[Part, ...] = (Text(text=_result_text(result)), *result.images)
    return ToolMessage(call_id=call.id, tool_name=call.name, status=result.status, parts=parts)


def _result_text(result: ToolResult) -> str:
    if result.status == "success" and (result.data or result.images):
        return result.data
    if result.status == "error":
        code = f" (exit code {result.return_code})" if result.return_code else ""
        lines = [f"Error{code}: {result.error or 'the tool gave no reason'}", result.data]
    elif result.status == "approval_required":
        lines = [f"Not run: {result.error or 'this call needs the approval of a person.'}", result.data]
    else:
        lines = [result.error or "The tool ran and returned no output.", result.data]
    if result.invocation and result.status != "success":
        lines.append(f"It ran: {result.invocation}")
    return "\n".join(line for line in lines if line)
