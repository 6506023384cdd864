"""
Makes sb3_cesd known to RL Zoo whenever RL Zoo is imported.

RL Zoo reads its table of algorithms before it parses its arguments, and has no plugin hook. This module is imported at every
start of
Python (by ``sb3_cesd_rl_zoo3.pth``), so it does almost nothing: it waits for modules of ``rl_zoo3``. It stands outside the
package, whose import would load PyTorch.
"""

import sys

PATCHED = ("rl_zoo3.utils", "rl_zoo3.hyperparams_opt", "rl_zoo3.exp_manager")


class RLZooFinder:
    """Finds modules as the others on ``sys.meta_path`` do, and has ``sb3_cesd.zoo`` extend those of RL Zoo once imported."""

    def find_spec(self, name, path=None, target=None):
        if name not in PATCHED:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                extend_after_import(spec.loader)
                return spec
        return None


def extend_after_import(loader):
    exec_module = loader.exec_module

    def exec_and_extend(module):
        exec_module(module)
        try:
            from sb3_cesd import zoo

            zoo.extend(module)
        except Exception as error:
            # RL Zoo must go on working without us
            print(f"sb3_cesd could not be added to RL Zoo: {type(error).__name__}: {error}", file=sys.stderr)

    loader.exec_module = exec_and_extend


if not any(type(finder).__name__ == "RLZooFinder" for finder in sys.meta_path):
    sys.meta_path.insert(0, RLZooFinder())
