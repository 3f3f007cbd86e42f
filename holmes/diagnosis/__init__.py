"""Finds what is broken in a cluster, and why, without a model: rules over a `ClusterState`, merged into incidents."""
