"""Notifications about incidents, for Slack and webhooks."""
