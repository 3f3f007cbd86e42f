"""Results of MCP tools, as text and images."""

from __future__ import annotations

import base64

import pytest
from mcp_types import CallToolResult

from holmes.toolsets.mcp.results import tool_result
from holmes.values.messages import Image
from tests.toolsets.mcp.server import PNG

_PICTURE = base64.b64encode(PNG).decode()


def _result(**content: object) -> CallToolResult:
    return CallToolResult.model_validate(content)


def test_parts_keep_their_order_and_what_cannot_be_shown_is_named() -> None:
    parts = [
        {"type": "text", "text": "first"},
        {"type": "image", "data": _PICTURE, "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a.txt", "name": "a", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "inside b"}},
        {"type": "resource", "resource": {"uri": "file:///c.png", "blob": _PICTURE, "mimeType": "image/png"}},
        {"type": "resource", "resource": {"uri": "file:///d.bin", "blob": "AAAA"}},
        {"type": "image", "data": "not base64", "mimeType": "image/png"},
    ]
    result = tool_result(_result(content=parts), invocation="s: t()")
    assert result.status == "success"
    assert result.data.splitlines() == [
        "first",
        "[audio of type audio/wav, which cannot be shown]",
        "[link to resource a (text/plain): file:///a.txt]",
        "inside b",
        "[binary resource file:///d.bin of type unknown, which cannot be shown]",
        "[image of type image/png that is damaged]",
    ]
    assert result.images == (Image(data=PNG, media_type="image/png"),) * 2
    assert result.invocation == "s: t()"


def test_structured_content_is_used_only_without_text() -> None:
    both = _result(content=[{"type": "text", "text": "3"}], structuredContent={"result": 3})
    assert tool_result(both, invocation="").data == "3"
    alone = tool_result(_result(content=[], structuredContent={"stock": 0}), invocation="")
    assert (alone.status, alone.data) == ("success", '{\n "stock": 0\n}')


@pytest.mark.parametrize("content", [[], [{"type": "text", "text": " \n"}]])
def test_nothing_is_no_data(content: list[object]) -> None:
    assert tool_result(_result(content=content), invocation="").status == "no_data"


def test_an_error_is_one_line() -> None:
    failed = _result(content=[{"type": "text", "text": "Traceback:\n  no stock"}], isError=True)
    assert tool_result(failed, invocation="").error == "Traceback: no stock"
    assert tool_result(_result(content=[], isError=True), invocation="").error == "the tool failed without a message"
