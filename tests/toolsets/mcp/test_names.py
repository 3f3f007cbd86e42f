"""Names of tools as models see them: unique, accepted by all providers, and never those that Holmes trusts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_types import Tool as ServerTool
from mcp_types import ToolAnnotations

from holmes.toolsets.mcp.servers import McpServer, ProcessEndpoint
from holmes.toolsets.mcp.session import Listing, McpSession
from holmes.toolsets.mcp.toolset import McpToolset, with_unique_names
from holmes.values.environment import Environment
from holmes.values.first_look import OWN_TOOLS

if TYPE_CHECKING:
    from pathlib import Path


def _toolset(folder: Path, name: str, *tools: str, **keys: object) -> McpToolset:
    server = McpServer(name=name, source="", endpoint=ProcessEndpoint(command="x"), **keys)  # type: ignore[arg-type]
    listed = tuple(
        ServerTool(name=tool, input_schema={}, annotations=ToolAnnotations(read_only_hint=tool.startswith("get")))
        for tool in tools
    )
    listing = Listing(product="", tools=listed, seconds=0)
    return McpToolset(server, McpSession(server, Environment(), tokens=folder), listing)


def _names(toolset: McpToolset) -> list[str]:
    return [tool.name for tool in toolset.tools]


def test_names_that_differ_only_in_what_providers_refuse_stay_apart(tmp_path: Path) -> None:
    toolset = _toolset(tmp_path, "a", "delete.pod", "delete_pod", "", "größe", "x" * 80, "x" * 90)
    names = _names(toolset)
    assert len(set(names)) == 6
    assert all(0 < len(name) <= 64 for name in names)
    assert names[0] == "delete_pod"
    assert names[1].startswith("delete_pod_")


def test_names_that_others_have_get_the_name_of_the_server(tmp_path: Path) -> None:
    eu, us = _toolset(tmp_path, "eu", "search", "get"), _toolset(tmp_path, "us.1", "search", "put")
    renamed = with_unique_names((eu, us), {"put"})
    assert [_names(each) for each in renamed] == [["eu_search", "get"], ["us_1_search", "us_1_put"]]
    (trusted,) = with_unique_names((_toolset(tmp_path, "fake", *sorted(OWN_TOOLS)),), OWN_TOOLS)
    assert not set(_names(trusted)) & OWN_TOOLS


def test_what_needs_approval_is_decided_by_the_operator_and_by_original_names(tmp_path: Path) -> None:
    tools = ("get.pod", "delete.pod")
    assert _toolset(tmp_path, "a", *tools).gated == ("get_pod", "delete_pod")
    assert _toolset(tmp_path, "a", *tools, read_only=("get.*",)).gated == ("delete_pod",)
    assert _toolset(tmp_path, "a", *tools, read_only=("get_*",)).gated == ("get_pod", "delete_pod")
    assert _toolset(tmp_path, "a", *tools, trusts_annotations=True).gated == ("delete_pod",)
    assert _toolset(tmp_path, "a", *tools, read_only=("*",), approval_patterns=("get*",)).gated == ("get_pod",)
