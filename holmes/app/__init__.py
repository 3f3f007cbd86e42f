"""The composition root: settings in, a ready investigator out."""
