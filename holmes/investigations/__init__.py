"""Receives alerts, groups them into incidents, and queues, runs and records investigations."""
