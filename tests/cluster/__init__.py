"""A real one-node Kubernetes for the tests; `python -m tests.cluster up` starts it by hand (see README.md)."""
