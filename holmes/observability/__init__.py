"""Reads what monitoring systems know about a cluster.

`access` opens a source within limits. `metrics` reads sources of metrics, and describes their series in numbers.
`traces` reads traces, and finds what decides their duration. `alerts` and `dashboards` read Alertmanager and Grafana.
"""
