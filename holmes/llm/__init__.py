"""Calls model providers. Only this package imports litellm, and only when a model is called."""
