import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from types import SimpleNamespace
from unittest.mock import patch

import pytest


@pytest.fixture(scope="session")
def call():
    """Call a script in this process; return its exit code and what it printed."""

    def run(script, *arguments):
        out, err, code = io.StringIO(), io.StringIO(), 0
        with patch.object(sys, "argv", [script, *map(str, arguments)]), redirect_stdout(out), redirect_stderr(err):
            try:
                import_module(script).main()
            except SystemExit as end:
                code = end.code
        return SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue())

    return run
