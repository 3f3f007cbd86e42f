"""Serves a recording as a read-only Kubernetes API."""
