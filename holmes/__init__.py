"""Holmes finds the root cause of Kubernetes problems.

This module imports nothing, so that `holmes --help` loads only what it uses.
"""

__version__ = "0.1.0"
