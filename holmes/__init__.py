"""Holmes finds the root cause of Kubernetes problems.

This module has no imports, so that `holmes --help` loads only the modules that it uses.
"""

__version__ = "0.1.0"
