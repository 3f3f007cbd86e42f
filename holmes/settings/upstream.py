"""Names that HolmesGPT knows and that do nothing here yet.

A user who brings such a configuration gets one warning that lists them, not an error for each. A name leaves these
sets when it starts to work. Names of toolsets are told apart by whoever reads the toolset files.
"""

from __future__ import annotations

UPSTREAM_KEYS = frozenset(
    {
        "custom_runbook_catalogs", "custom_runbooks",
        "custom_skill_paths", "fast_model", "github_owner", "github_pat", "github_query", "github_repository",
        "github_url", "jira_api_key", "jira_query", "jira_url", "jira_username", "mcp_servers", "opsgenie_api_key",
        "opsgenie_query", "opsgenie_team_integration_key", "pagerduty_api_key", "pagerduty_incident_key",
        "pagerduty_user_email", "should_try_robusta_ai", "log_level",
    }
)  # fmt: skip
"""Keys of `config.yaml`."""

UPSTREAM_VARIABLES = frozenset({"CERTIFICATE", "CUSTOM_SKILL_PATHS"})
"""Variables whose loss a user would not notice otherwise. Those that other programs share (`LOG_LEVEL`, `OTEL_*`) are
not listed."""
