"""Draws charts: `draw_picture` makes a PNG with matplotlib, and `draw_plot` makes lines of text for a terminal."""

from holmes.charts.picture import draw_picture
from holmes.charts.plot import draw_plot

__all__ = ["draw_picture", "draw_plot"]
