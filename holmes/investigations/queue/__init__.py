"""Takes investigations from the queue and runs them to the end, once, as durable workflows."""
