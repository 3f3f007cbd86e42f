"""Records a cluster as files, and serves a recording as a read-only Kubernetes API on loopback.

`recorder` writes a recording. `sources` reads a recording, or files of other tools in one of the `formats`. `server`
responds to requests.
"""
