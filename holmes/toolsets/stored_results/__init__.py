"""Toolset `holmes/results`: search, line ranges, jq, statistics and pictures over stored results.

Reads only through the `ResultStore`: no path outside it, no shell, no cluster. Every result is bounded by the limit for
a single result, says how much more exists, and is never stored again.
"""

from holmes.toolsets.stored_results.toolset import TOOL_NAMES, TOOLSET_NAME, StoredResultsToolset

__all__ = ["TOOLSET_NAME", "TOOL_NAMES", "StoredResultsToolset"]
