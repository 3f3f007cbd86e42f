"""The agentic loop and its parts: tool calls, context policies, and the size of the conversation."""
