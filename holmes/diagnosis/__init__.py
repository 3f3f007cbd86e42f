"""Detects the faults in a cluster and determines their causes without a model.

Rules check a `ClusterState`, and their findings are merged into incidents.
"""
