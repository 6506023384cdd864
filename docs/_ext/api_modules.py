"""
The fenced block ``{modules}`` documents the modules it names; a package stands for all of its modules.

What a package offers, as ``sb3_cesd.metrics.maze_coverage``, may be referred to by that name.
"""

import pkgutil
import re
import sys
from collections import namedtuple
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

BLOCK = re.compile(r"```\{modules\}\n(.*?)```", re.DOTALL)
#: Type of the fields of named tuples
FIELD = type(namedtuple("Pair", ["first"]).first)  # type: ignore[attr-defined]
SECTION = """\
## {title}

```{{eval-rst}}
.. automodule:: {name}
```
"""


def modules_of(name: str) -> list[str]:
    """Find the modules that a name stands for."""
    package = import_module(name)
    if not hasattr(package, "__path__"):
        return [name]
    found = pkgutil.iter_modules(package.__path__, prefix=f"{name}.")
    return [each.name for each in found if not each.ispkg and not each.name.rpartition(".")[2].startswith("_")]


def expand(app: Sphinx, page: str, source: list[str]) -> None:
    """Write a section for each module of the blocks of a page."""

    def sections(match: re.Match[str]) -> str:
        names = [each for line in match[1].split() for each in modules_of(line)]
        return "\n".join(SECTION.format(title=name.removeprefix("sb3_cesd."), name=name) for name in names)

    source[0] = BLOCK.sub(sections, source[0])


def resolve_exported(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement) -> Any:
    """Find what a package offers in the module that defines it."""
    package, _, name = str(node.get("reftarget", "")).rpartition(".")
    if node.get("refdomain") != "py" or package.partition(".")[0] != "sb3_cesd" or package not in sys.modules:
        return None
    exported = getattr(sys.modules[package], name, None)
    target = f"{getattr(exported, '__module__', '')}.{name}"
    if target == node["reftarget"]:
        return None
    domain = env.domains.python_domain
    return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], target, node, content)


def skip_fields(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, which the docstring of the class explains."""
    return True if isinstance(member, FIELD) else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", expand)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("missing-reference", resolve_exported)
    return {"parallel_read_safe": True}
