"""The rows of the specification of context management: what each asks for, its setting, and the test that proves it."""
