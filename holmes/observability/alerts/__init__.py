"""Sources of alerts. `source` has their protocol and values, and `alertmanager` reads Alertmanager."""
