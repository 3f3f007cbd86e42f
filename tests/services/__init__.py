"""Real PostgreSQL, Prometheus, Alertmanager and Chromium for the tests, from Debian's packages."""
