"""Values, protocols and the agentic loop. Imports nothing of Holmes outside this package."""
