"""From alerts to incidents and investigations: payloads, routes and grouping."""
