"""Toolset `holmes/results`: reads back what is stored (T17, N2). This is the door; one file for each tool.

Made in `holmes.app` when results are stored. Reads through the `ResultStore` only: no path outside it, no shell, no
cluster. Every answer is bounded by the cap of a single result, says how much more there is, and is never spilled again.
"""

from holmes.toolsets.stored_results.toolset import TOOL_NAMES, TOOLSET_NAME, StoredResultsToolset

__all__ = ["TOOLSET_NAME", "TOOL_NAMES", "StoredResultsToolset"]
