"""Finds faults of a cluster and their causes without a model: rules over a `ClusterState`, merged into incidents."""
