"""The toolset `prometheus/metrics`: finds metrics, and runs queries on the configured sources."""
