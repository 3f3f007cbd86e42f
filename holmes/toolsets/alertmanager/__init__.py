"""The toolset `alertmanager/alerts`: lists alerts, silences and receivers of Alertmanager."""
