"""Serves a recording as a read-only Kubernetes API. Started through `serving.serve_snapshot`."""
