"""Tests of Holmes as an MCP server over standard streams. Those over HTTP are in `tests/server`."""
