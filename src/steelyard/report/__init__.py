"""Report pages: their content as data, and one self-contained HTML file for each."""

from typing import TYPE_CHECKING

from steelyard._lazy import lazy_attributes
from steelyard.report._page import Page, Section, Table

if TYPE_CHECKING:
    from steelyard.report._payload import payload_page as payload_page

__all__ = ["Page", "Section", "Table", "payload_page"]

if not TYPE_CHECKING:
    __getattr__ = lazy_attributes(__name__, {"payload_page": "_payload"})
