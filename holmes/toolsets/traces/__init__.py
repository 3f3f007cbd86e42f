"""The toolset `tracing/traces`: searches, reads and compares traces of Jaeger and Tempo."""
