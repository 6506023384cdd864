"""Scripts of the benchmarks, called in the process of the tests: a new one takes seconds to start."""

import importlib
import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch


class Result(NamedTuple):
    """
    What a script did.

    :param returncode: its exit code
    :param stdout: what it printed
    :param stderr: its messages
    """

    returncode: int
    stdout: str
    stderr: str


def call(script, *arguments):
    """
    Call a script; its folder has to be on the path.

    :param script: its name, without ``.py``
    :param arguments: its arguments
    :return: what it did
    """
    out, err, code = io.StringIO(), io.StringIO(), 0
    with patch.object(sys, "argv", [script, *map(str, arguments)]), redirect_stdout(out), redirect_stderr(err):
        try:
            importlib.import_module(script).main()
        except SystemExit as end:
            code = end.code
    return Result(code, out.getvalue(), err.getvalue())
