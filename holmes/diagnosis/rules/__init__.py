"""The catalogue of faults, one family per file. `holmes.diagnosis.engine` runs every `Rule` in these modules."""
