"""Alerts, incidents and investigations of the server: intake, grouping, queue, records."""
