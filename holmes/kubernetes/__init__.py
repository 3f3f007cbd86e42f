"""The cluster: configuration, credentials and read-only requests.

The only package that imports the kubernetes client.
"""
