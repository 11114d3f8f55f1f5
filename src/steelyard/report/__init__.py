"""Pages that convince a colleague: what they say, and how they become one HTML file."""

from steelyard.report._page import Page, Section, Table

__all__ = ["Page", "Section", "Table"]
