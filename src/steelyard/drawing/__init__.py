"""Plots as data, drawn for a page, live or not, into a picture file, or inline in a notebook."""

from steelyard.drawing.interactive import panel_figure
from steelyard.drawing.picture import Picture, notebook_html, save_picture
from steelyard.drawing.plot import Band, Curve, Panel, Plot
from steelyard.drawing.scene import Scene, Solid
from steelyard.drawing.vector import vector_html

__all__ = [
    "Band",
    "Curve",
    "Panel",
    "Picture",
    "Plot",
    "Scene",
    "Solid",
    "notebook_html",
    "panel_figure",
    "save_picture",
    "vector_html",
]
