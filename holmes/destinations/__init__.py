"""Where news of incidents goes: Slack, webhooks. Built in `holmes.app`; one file for each kind."""
