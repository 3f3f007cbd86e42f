"""The formats of clusters as files, one module each. Each module defines `FORMAT`, which `sources` discovers."""
