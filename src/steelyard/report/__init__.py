"""Pages that convince a colleague: what they say, and how they become one HTML file."""

from steelyard.report.html import page_html, write_page
from steelyard.report.page import Page, Section, Table

__all__ = ["Page", "Section", "Table", "page_html", "write_page"]
