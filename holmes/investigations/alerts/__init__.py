"""Alerts become incidents and investigations: payloads, routes, and what becomes of each alert."""
