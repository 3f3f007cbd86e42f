"""The agentic loop: runs tool calls, applies context policies, and limits the size of conversations."""
