"""Tests of the MCP client against real servers."""
