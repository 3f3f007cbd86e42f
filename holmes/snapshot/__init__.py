"""Clusters as files: records a cluster, and serves a recording as a read-only Kubernetes API on loopback.

`recorder` writes a recording. `sources` reads a recording, a cluster dump or manifests. `server` answers requests.
"""
