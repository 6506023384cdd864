"""Commands as a user types them, each in a process of its own."""

import json
import os
import subprocess
import sys

#: A CeSD model that trains in a second
SMALL = [
    "-params",
    "n_skills:4",
    "learning_starts:100",
    "batch_size:32",
    "buffer_size:2000",
    "policy_kwargs:dict(net_arch=[16,16])",
    "intrinsic_kwargs:dict(encoder_kwargs=dict(net_arch=[16]),entropy_kwargs=dict(k=3))",
]


def run(folder, *arguments, module="rl_zoo3.train", options=(), success=True, **environment):
    """Run a module in a folder, or without one a command."""
    command = [sys.executable, *options, "-m", module] if module else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    result = subprocess.run(
        [*command, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert (result.returncode == 0) == success, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout + result.stderr


#: Runs modules as ``python -m`` does
ONE_AFTER_ANOTHER = """
import json, runpy, sys

for words in json.loads(sys.argv[1]):
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
"""


def run_all(folder, *commands, **environment):
    """Run modules with their arguments in a folder, all in one process, which starts once."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    return run(folder, sys.executable, "-c", ONE_AFTER_ANOTHER, words, module=None, **environment)
