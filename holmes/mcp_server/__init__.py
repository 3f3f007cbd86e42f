"""Offers Holmes as an MCP server, over standard input and output or HTTP, to editors and other agents.

`protocol` speaks MCP, and `served` has the tools: those of the toolsets that only read, and `ask_holmes`.
"""
