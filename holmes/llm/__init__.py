"""The model provider. The only package that imports litellm, and only when a model is asked."""
