"""Holmes finds the root cause of Kubernetes problems.

Kept empty on purpose: `holmes --help` must not pay for what it does not use.
"""

__version__ = "0.1.0"
