"""
Makes sb3_cesd known to RL Zoo whenever RL Zoo is imported.

RL Zoo reads its table of algorithms before it parses its arguments, and has no plugin hook. ``sb3_cesd_rl_zoo3.pth`` or, from
Python 3.15 on, ``sb3_cesd_rl_zoo3.start`` (PEP 829) calls ``install`` at every start of Python, so it only registers a finder
that waits for modules of ``rl_zoo3``. ``sb3_cesd.zoo`` defines which of them are extended. This module is outside the package
because importing the package would load PyTorch. With ``SB3_CESD_NO_HOOK=1`` in the environment, RL Zoo stays as it is.
"""

import sys


def install():
    """Register the finder. Calling this again is harmless."""
    if not any(type(finder).__name__ == "RLZooFinder" for finder in sys.meta_path):
        sys.meta_path.insert(0, RLZooFinder())


class RLZooFinder:
    """Finds modules of RL Zoo with the other finders on ``sys.meta_path``, and extends them after their import."""

    def __init__(self):
        self.searched = set()
        self.complaints = set()

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("rl_zoo3.") or name in self.searched:
            return None
        # Another finder may also ask all the others: avoid infinite recursion
        self.searched.add(name)
        try:
            for finder in sys.meta_path:
                find_spec = getattr(finder, "find_spec", None)
                spec = None if finder is self or find_spec is None else find_spec(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = ExtendingLoader(spec.loader, self.extend)
                    return spec
            return None
        finally:
            self.searched.discard(name)

    def extend(self, module):
        import os

        if os.environ.get("SB3_CESD_NO_HOOK", "0") not in ("", "0"):
            return
        try:
            from sb3_cesd import zoo

            zoo.extend(module)
        except Exception as error:
            # RL Zoo must keep working without this package
            complaint = f"{type(error).__name__}: {error}"
            if complaint not in self.complaints:
                self.complaints.add(complaint)
                print(
                    f"sb3_cesd could not be added to RL Zoo, which continues without it: {complaint}. "
                    "Install sb3_cesd again, or remove it with: pip uninstall sb3_cesd",
                    file=sys.stderr,
                )


class ExtendingLoader:
    """
    Does what another loader does, and extends the module that it has executed.

    It does not change the other loader, which may be shared, or be the proxy of another package that hooks imports.
    """

    def __init__(self, loader, extend):
        self.loader = loader
        self.extend = extend

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def exec_module(self, module):
        # The module keeps the loader that it has without this package
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        self.extend(module)
