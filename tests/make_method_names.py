"""
Write what type checkers and editors know of the methods, which are found when the package is imported.

    python tests/make_method_names.py
"""

from pathlib import Path

import sb3_cesd
from sb3_cesd import METHODS, CeSD

FILE = Path(sb3_cesd.__file__).parent / "_method_names.pyi"


def method_names() -> str:
    """Write imports of all classes of methods but CeSD, which ``sb3_cesd`` imports by itself."""
    found = [method for method in METHODS.values() if method is not CeSD]
    lines = ["# Written by `make format`, from the methods that are found"]
    lines += [f"from {method.__module__} import {method.__name__}" for method in found]
    lines += ["", "__all__ = [  # noqa: RUF022"]
    lines += [f'    "{method.__name__}",' for method in found]
    return "\n".join([*lines, "]", ""])


def main() -> None:
    """Run the command."""
    FILE.write_text(method_names())


if __name__ == "__main__":
    main()
