"""The agentic loop and its parts: tool calls, context policies, and conversation size."""
