"""Records a cluster as files, and serves a recording as a read-only Kubernetes API on loopback.

`recorder` writes a recording. `sources` reads a recording, a cluster dump or manifests. `server` responds to requests.
"""
