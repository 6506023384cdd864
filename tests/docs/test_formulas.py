import re

import pytest
from blocks import ROOT


def test_formulas_are_drawn_without_a_script_of_another_server():
    tex2mathml = pytest.importorskip("docutils.utils.math.latex2mathml").tex2mathml
    pages = [path.read_text() for path in sorted((ROOT / "docs").rglob("*.md"))]
    formulas = [found[1] for text in pages for found in re.finditer(r"(?<!\$)\${1,2}([^$`]+)\${1,2}(?!\$)", text)]
    # What docutils can't read, such as \big, is an error
    assert len(formulas) > 20 and all(tex2mathml(formula).startswith("<math") for formula in formulas)
    assert 'html_math_renderer = "mathml"' in (ROOT / "docs" / "conf.py").read_text()
