"""The LLM adapter against the real litellm and a scripted provider on a real socket."""
