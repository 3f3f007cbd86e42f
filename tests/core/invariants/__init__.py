"""The fifteen invariants of context management, each over random histories or whole runs of the loop.

A policy is drawn with every example; invariants 3, 9 and 11 bind `balanced` only. Examples are derived from the test
itself, so every run tests the same ones.
"""
