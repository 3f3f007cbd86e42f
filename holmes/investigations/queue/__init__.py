"""Runs queued investigations to the end, once each, as durable workflows."""
