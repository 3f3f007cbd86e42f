"""Implements `holmes serve`: the HTTP API and the web pages."""
