"""Plots and scenes as data, drawn for pages, live pages, picture files and notebooks."""

from steelyard.drawing._interactive import panel_figure
from steelyard.drawing._mesh import Mesh
from steelyard.drawing._picture import Picture, notebook_html, save_picture
from steelyard.drawing._plot import Band, Curve, Panel, Plot, Renderer
from steelyard.drawing._scene import Scene, Solid

__all__ = [
    "Band",
    "Curve",
    "Mesh",
    "Panel",
    "Picture",
    "Plot",
    "Renderer",
    "Scene",
    "Solid",
    "notebook_html",
    "panel_figure",
    "save_picture",
]
