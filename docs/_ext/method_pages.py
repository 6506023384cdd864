"""
Complete the page of each method of the registry; a new method gets one without a touch.

What is written by hand stands in docs/methods/NAME.md, the rest comes from the class and its yml file.
"""

import inspect
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from measured import command_of, results_of, update_readmes

from sb3_cesd import METHODS, SkillDDPG
from sb3_cesd.zoo.hyperparams import hyperparams_folder

if TYPE_CHECKING:  # the pages can be composed without it
    from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[1] / "methods"

PAGE = """\
# {name}

{summary}

{notes}## Can I use it?

- Several environments: ✔️ (`n_envs`, [`make_batched`](../environments.md#many-robots-at-once))
- Discrete skills: ✔️ &nbsp; Continuous skills: {continuous}

| Space | Action | Observation |
|---|---|---|
| Discrete | ❌ | ❌ |
| Box | ✔️ | ✔️ |
| MultiDiscrete | ❌ | ❌ |
| MultiBinary | ❌ | ❌ |
| Dict | ❌ | ✔️ (of Box spaces) |

## Example

```python
import gymnasium as gym

from sb3_cesd import {name}, preset

env = gym.make("MazeSquareA-v0")
settings = preset("laptop", "MazeSquareA-v0", "{key}")
model = {name}("MlpPolicy", env, **settings).learn(settings.n_timesteps, progress_bar=True)
model.save("{key}_maze")

observation, _ = env.reset()
action, _ = model.predict(observation, skill=3)
```

Through RL Zoo:

```sh
python -m rl_zoo3.train --algo {key} --env MazeSquareA-v0 --num-threads 1
python -m sb3_cesd.show logs/{key}/MazeSquareA-v0_1/MazeSquareA-v0.zip
```

## Results

{measured}
{results}## Hyperparameters

Defaults that differ from those of [`SkillDDPG`](../api/algorithms.md): {defaults}.

`hyperparams/{key}.yml` states what else differs in RL Zoo, by scale and environment; `common.yml` holds what all methods share
(see [RL Zoo](../rl_zoo.md#hyperparameters)).

```yaml
{hyperparams}
```

## Arguments

Those of [`SkillDDPG`](../api/algorithms.md), with `intrinsic_kwargs` for the arguments of `{reward}`:

```{{eval-rst}}
{classes}
```
"""


def page(key: str, method: type[SkillDDPG]) -> str:
    """
    Compose the page of a method.

    :param key: its name in RL Zoo
    :param method: its class
    :return: Markdown
    """
    reward = method.reward_class
    notes, results = written_by_hand(key)
    hyperparams = hyperparams_folder() / f"{key}.yml"
    because = method.discrete_because
    return PAGE.format(
        key=key,
        name=method.__name__,
        summary=summary(method),
        notes=notes,
        measured=results_of(key),
        results=results,
        continuous="✔️" if because is None else f"❌, {because}",
        defaults=", ".join(f"`{name}={value!r}`" for name, value in own_defaults(method).items()) or "none",
        hyperparams=differences(hyperparams) if hyperparams.exists() else "{}",
        reward=reward.__name__,
        classes="\n".join(f".. autoclass:: {each.__module__}.{each.__name__}\n   :no-members:\n" for each in classes(method)),
    )


def classes(method: type[SkillDDPG]) -> list[type]:
    """
    Find the classes that make up a method.

    :param method: its class
    :return: the algorithm, its reward, and what else its module defines
    """
    defined = vars(import_module(method.__module__)).values()
    others = [each for each in defined if isinstance(each, type) and each.__module__ == method.__module__]
    return list(dict.fromkeys([method, method.reward_class, *others]))


def summary(method: type[SkillDDPG]) -> str:
    """
    Take the first paragraph of the docstring of a method.

    :param method: its class
    :return: one line
    """
    return (inspect.getdoc(method) or "").split("\n\n")[0].replace("``", "`").replace("\n", " ")


def written_by_hand(key: str) -> tuple[str, str]:
    """
    Read what is written by hand about a method: how it works, then what its results tell and how to replicate them.

    :param key: its name in RL Zoo
    :return: the text before and after the heading "Results"; the first may be empty, the second has the command of the
        benchmark if no other one is written
    """
    path = FOLDER / f"{key}.md"
    text = path.read_text().partition("\n")[2] if path.exists() else ""
    before, _, results = text.partition("## Results\n")
    parts = [results.strip()] if "## How to replicate" in results else [results.strip(), command_of(key).strip()]
    return f"{before.strip()}\n\n".lstrip("\n"), "".join(f"{part}\n\n" for part in parts if part)


def own_defaults(method: type[SkillDDPG]) -> dict[str, Any]:
    """
    Find the arguments whose defaults differ from those of the backbone.

    :param method: its class
    :return: defaults by the name of their argument
    """
    backbone = inspect.signature(SkillDDPG).parameters
    parameters = inspect.signature(method).parameters
    return {name: each.default for name, each in parameters.items() if each.default != backbone[name].default}


def differences(path: Path) -> str:
    """
    Read a file of hyperparameters without the comment at its top.

    :param path: path of the file
    :return: YAML
    """
    text = path.read_text()
    assert isinstance(yaml.safe_load(text), dict)
    lines = text.splitlines()
    while lines and (lines[0].startswith("#") or not lines[0]):
        lines.pop(0)
    return "\n".join(lines)


def begin_pages() -> None:
    """Begin the pages that are not there, and bring the tables in README.md and on the page of the robots up to date."""
    update_readmes()
    for key, method in METHODS.items():
        path = FOLDER / f"{key}.md"
        if not path.exists():
            path.write_text(f"# {method.__name__}\n")


def complete(app: "Sphinx", name: str, source: list[str]) -> None:
    """
    Complete the page of a method.

    :param app: the application
    :param name: name of a page, relative to docs
    :param source: its text, the only element, changed in place
    """
    folder, _, key = name.rpartition("/")
    if folder == "methods" and key in METHODS:
        source[0] = page(key, METHODS[key])


def setup(app: "Sphinx") -> dict[str, Any]:
    """Register the extension."""
    app.connect("config-inited", lambda app, config: begin_pages())
    # Before links are rewritten
    app.connect("source-read", complete, priority=400)
    return {"parallel_read_safe": True}
