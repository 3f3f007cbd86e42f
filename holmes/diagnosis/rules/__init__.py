"""The catalogue of faults, one family per file. Every `Rule` of every module here is run, see `catalogue`."""
