"""Implements the toolset `holmes/results`: search, line ranges, jq, statistics and images for stored results.

The toolset reads only the `ResultStore`, and uses no other files, no shell and no cluster. Every result is within the
limit for a single result, states how much is omitted, and is never stored again.
"""

from holmes.toolsets.stored_results.toolset import TOOL_NAMES, TOOLSET_NAME, StoredResultsToolset

__all__ = ["TOOLSET_NAME", "TOOL_NAMES", "StoredResultsToolset"]
