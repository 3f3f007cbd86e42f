"""Clusters as files: records a cluster, and serves a recording as a read-only Kubernetes API on loopback.

`recorder` writes a recording, `sources` reads one (or a cluster dump, or manifests), `server` answers from it.
"""
