"""How `make docs` makes a site of the pages in this folder; it needs no network, and its search neither."""

from importlib.metadata import version as version_of

project = "steelyard"
author = "the steelyard authors"
copyright = "2026, the steelyard authors"  # noqa: A001
release = version = version_of("steelyard")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "pictures"]
suppress_warnings = ["myst.xref_missing"]  # links out of this folder; a test checks them all
myst_heading_anchors = 3
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_typehints = "none"  # they stand in the signature's source; units and shapes in the text
default_role = "code"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"

html_theme = "furo"
html_title = "steelyard"
html_show_sphinx = False
templates_path: list[str] = []
