"""The routes of the HTTP API for investigations, incidents, deliveries, alerts, checks, health and metrics."""
