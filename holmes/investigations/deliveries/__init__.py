"""Queues notifications about incidents and delivers them."""
