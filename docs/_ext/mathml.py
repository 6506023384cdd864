"""Formulas as MathML, which browsers draw themselves: MathJax would come from another server."""

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def visit_math(translator: Any, node: nodes.Element) -> None:
    """Write a formula; one that docutils can't read is a warning, as a link that leads nowhere is."""
    try:
        translator.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    except MathError as error:
        logger.warning("%s in the formula %s", error, node.astext(), location=node)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
