"""Write the page of refusals, by provoking them."""

import runpy
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
SCRIPT = DOCS.parent / "tests" / "bad_input" / "refusals.py"


def write_page() -> None:
    """Write the page, if it changed."""
    runpy.run_path(str(SCRIPT))["write_refusals"](DOCS / "refusals.md")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("config-inited", lambda app, config: write_page())
    return {"parallel_read_safe": True}
