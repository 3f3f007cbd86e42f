"""The HTTP API: investigations, incidents, deliveries, the webhook, health and metrics."""
