"""Names that HolmesGPT knows and that do nothing here yet.

A user who brings such a configuration gets one warning that lists them, not an error for each. A name leaves these
sets when it starts to work. Names of toolsets are told apart by whoever reads the toolset files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

UPSTREAM_KEYS = frozenset(
    {
        "additional_toolsets", "anchors", "custom_runbook_catalogs", "custom_runbooks", "custom_skill_paths",
        "custom_toolsets_from_cli", "fast_model", "github_owner", "github_pat", "github_query", "github_repository",
        "github_url", "jira_api_key", "jira_query", "jira_url", "jira_username", "log_level", "mcp_servers",
        "opsgenie_api_key", "opsgenie_query", "opsgenie_team_integration_key", "pagerduty_api_key",
        "pagerduty_incident_key", "pagerduty_user_email", "should_try_robusta_ai", "skill_repos",
    }
)  # fmt: skip
"""Keys of `config.yaml`."""

_VARIABLES = frozenset(
    {
        "AZURE_AD_TOKEN", "AZURE_AD_TOKEN_AUTH", "CUSTOM_SKILL_PATHS", "DISABLE_PROMETHEUS_TOOLSET",
        "ENABLED_BY_DEFAULT_TOOLSETS", "MAX_OUTPUT_TOKEN_RESERVATION", "PROMETHEUS_URL", "SENTRY_DSN", "SLACK_CHANNEL",
        "SLACK_TOKEN", "TOOL_CALL_SAFEGUARDS_ENABLED", "USE_LEGACY_KUBERNETES_LOGS",
    }
)  # fmt: skip
_PREFIX = "ROBUSTA_"


def upstream_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that are set, sorted, and that HolmesGPT reads and Holmes does not."""
    known = (name for name in environment if name in _VARIABLES or name.startswith(_PREFIX))
    return tuple(sorted(name for name in known if environment[name].strip()))
