"""Sends notifications about incidents to Slack and webhooks."""
