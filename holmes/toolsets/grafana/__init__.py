"""The toolset `grafana/dashboards`: finds and reads dashboards of Grafana, and runs the queries of their panels."""
