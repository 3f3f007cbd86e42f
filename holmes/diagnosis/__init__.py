"""Finds faults in a cluster and their causes without a model.

Rules check a `ClusterState`, and their findings are merged into incidents.
"""
