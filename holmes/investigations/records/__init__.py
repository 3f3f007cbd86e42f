"""Stores incidents, alerts and investigations in a database."""
