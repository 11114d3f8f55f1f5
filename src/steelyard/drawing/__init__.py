"""Plots as data, drawn for a page, live or not, into a picture file, or inline in a notebook."""

from steelyard.drawing.interactive import panel_figure
from steelyard.drawing.picture import notebook_html, save_picture
from steelyard.drawing.plot import Band, Curve, Panel, Plot
from steelyard.drawing.scene import Scene, Solid
from steelyard.drawing.vector import vector_html

__all__ = [
    "Band",
    "Curve",
    "Panel",
    "Plot",
    "Scene",
    "Solid",
    "notebook_html",
    "panel_figure",
    "save_picture",
    "vector_html",
]
