"""Defines everything that can be configured. Only this package reads environment variables."""
