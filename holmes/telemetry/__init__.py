"""Metrics and traces. Fed by `holmes.app` and the server; off unless somebody asks for them."""
