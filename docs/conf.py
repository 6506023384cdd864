"""Configuration of Sphinx: ``make docs`` builds the HTML pages in docs/_build/html."""

import os
import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "sb3_cesd"
author = "The sb3_cesd authors"
copyright = "2026, The sb3_cesd authors"
release = (ROOT / "sb3_cesd" / "version.txt").read_text().strip()
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "api_modules",
    "mathml",
    "repository_links",
    "method_pages",
]
if os.environ.get("READTHEDOCS"):  # the inventories are fetched over the network
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
        "gymnasium": ("https://gymnasium.farama.org", None),
        "stable_baselines3": ("https://stable-baselines3.readthedocs.io/en/master", None),
    }

source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
# Messages of errors are shown as they are
smartquotes = False
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
# Tables are pages long
autodoc_default_options = {"members": True, "show-inheritance": True, "no-value": True}
maximum_signature_line_length = 100

# Every reference to this package has to lead somewhere; those to other packages do on Read the Docs
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!sb3_cesd\.).*"), ("py:class", r".*\.(Self[A-Z]\w+|ArrayOrTensor|Range|PlayEnvs|T)")]

copybutton_exclude = ".linenos, .gp, .go"
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"sb3_cesd {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
