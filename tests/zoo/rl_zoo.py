"""
Commands as a user types them, each in a process of its own.

Most time of a short command goes into imports. So a command is run in a fork of a process that has done them, unless it has
environment variables or options of Python, which might change what is imported.
"""

import json
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from importlib.util import find_spec

import numpy as np
import torch as th

#: A CeSD model that trains in a second
SMALL = [
    "-params",
    "n_skills:4",
    "learning_starts:100",
    "batch_size:32",
    "buffer_size:2000",
    "policy_kwargs:dict(net_arch=[16,16])",
    "intrinsic_kwargs:dict(encoder='contrastive',encoder_kwargs=dict(net_arch=[16]),entropy_kwargs=dict(k=3))",
]

#: Seconds that a command may take, and how much of its output a failed test shows
TIMEOUT, SHOWN = 300, 6000

forks = multiprocessing.get_context("forkserver")
# Triton first, where PyTorch for CUDA brings it: see sb3_cesd.envs.robots.gl.load_triton
forks.set_forkserver_preload(
    [*(["triton"] if find_spec("triton") else []), "rl_zoo3.exp_manager", "rl_zoo3.import_envs", "dm_control.suite"]
)


def run(folder, *arguments, module="rl_zoo3.train", options=(), success=True, fresh=False, **environment):
    """Run a module in a folder, or without one a command; ``fresh``: with all imports, which choose OpenGL."""
    words = [str(word) for word in arguments]
    if module and not (fresh or options or environment):
        code, output = run_forked(folder, module, words)
    else:
        code, output = run_fresh(folder, module, words, options, environment)
    assert (code == 0) == success, output[-SHOWN:]
    return output


def run_fresh(folder, module, words, options=(), environment=None):
    """Tell the exit code and the output of a command of a Python that starts from nothing."""
    command = [sys.executable, *options, "-m", module] if module else []
    result = subprocess.run(
        [*command, *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    return result.returncode, result.stdout


def run_forked(folder, module, words):
    """Tell the exit code and the output of a module in a fork of a process that has done the imports."""
    with tempfile.NamedTemporaryFile("r") as output:
        process = forks.Process(target=run_here, args=(folder, module, words, output.name))
        process.start()
        process.join(TIMEOUT)
        late = process.is_alive()
        process.kill()
        said = output.read()
        assert not late, f"{module} takes more than {TIMEOUT} seconds: {said[-SHOWN:]}"
        return process.exitcode, said


def run_here(folder, module, words, output):
    """Become what ``python -m module`` is."""
    with open(output, "w") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    # All forks would draw the same
    np.random.seed()
    th.seed()
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


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
