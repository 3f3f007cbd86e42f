"""Reads dashboards of Grafana, and runs the queries of their panels.

`dashboard` has the values, `variables` puts values into queries, `frames` reads results, and `grafana` speaks the API.
"""
