"""The catalogue of faults, with one family of rules per file. `holmes.diagnosis.engine` runs all these rules."""
