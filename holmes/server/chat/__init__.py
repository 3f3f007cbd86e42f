"""Chats over HTTP: event streams that clients can resume, approvals and signed conversations."""
