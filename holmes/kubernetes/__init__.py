"""Reads the cluster: configuration, credentials and read-only requests.

Only this package imports the kubernetes client.
"""
