"""The composition root: settings in, a ready investigator out. Called by the faces; nothing below imports it."""
