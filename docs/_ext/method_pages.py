"""
Complete the page of each method of the registry; a new method gets one without a touch.

What is written by hand stands in docs/methods/NAME.md, the rest comes from the class and its yml file.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measured import command_of, results_of, update_readmes

from sb3_cesd import METHODS, SkillDDPG
from sb3_cesd.presets import hyperparams_folder

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

from sb3_cesd import {name}, preset, show_skills

settings = preset("laptop", "MazeSquareA-v0", "{key}")
model = {name}("MlpPolicy", "MazeSquareA-v0", **settings).learn(settings.n_timesteps, progress_bar=True)
model.save("{key}_maze")
show_skills(model).save("{key}_skills")  # a picture and metrics

observation, _ = gym.make("MazeSquareA-v0").reset()
action, _ = model.predict(observation, skill=3)
```

Through RL Zoo:

```sh
python -m rl_zoo3.train --algo {key} --env MazeSquareA-v0
python -m sb3_cesd.show --algo {key} --env MazeSquareA-v0 -f logs
```

## Results

{measured}
{results}## Hyperparameters

Defaults that differ from those of [`SkillDDPG`](../api/algorithms.md): {defaults}.

`hyperparams/{key}.yml` states what else differs in RL Zoo, by environment; `hyperparams/{key}_published.yml` does so at
published scale (see [RL Zoo](../rl_zoo.md#hyperparameters)).

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
    """Compose the page of a method."""
    reward = method.reward_class
    notes, results = written_by_hand(key)
    backbone, own = (inspect.signature(each).parameters for each in (SkillDDPG, method))
    defaults = {name: each.default for name, each in own.items() if each.default != backbone[name].default}
    hyperparams = hyperparams_folder() / f"{key}.yml"
    because = method.discrete_because
    return PAGE.format(
        key=key,
        name=method.__name__,
        # The first paragraph of the docstring
        summary=(inspect.getdoc(method) or "").split("\n\n")[0].replace("``", "`").replace("\n", " "),
        notes=notes,
        measured=results_of(key),
        results=results,
        continuous="✔️" if because is None else f"❌, {because}",
        defaults=", ".join(f"`{name}={value!r}`" for name, value in defaults.items()) or "none",
        # Without the comment at its top
        hyperparams=re.sub(r"\A(#.*\n|\n)+", "", hyperparams.read_text()).rstrip() if hyperparams.exists() else "{}",
        reward=reward.__name__,
        classes="\n".join(f".. autoclass:: {each.__module__}.{each.__name__}\n   :no-members:\n" for each in classes(method)),
    )


def classes(method: type[SkillDDPG]) -> list[type]:
    """Find the classes that make up a method."""
    defined = vars(import_module(method.__module__)).values()
    others = [each for each in defined if isinstance(each, type) and each.__module__ == method.__module__]
    return list(dict.fromkeys([method, method.reward_class, *others]))


def written_by_hand(key: str) -> tuple[str, str]:
    """Read what is written by hand about a method: how it works, then what its results tell and how to replicate them."""
    path = FOLDER / f"{key}.md"
    text = path.read_text().partition("\n")[2] if path.exists() else ""
    before, _, results = text.partition("## Results\n")
    parts = [results.strip()] if "## How to replicate" in results else [results.strip(), command_of(key).strip()]
    return f"{before.strip()}\n\n".lstrip("\n"), "".join(f"{part}\n\n" for part in parts if part)


def begin_pages() -> None:
    """Begin the pages that are not there, and bring the tables in README.md and on the page of the robots up to date."""
    update_readmes()
    for key, method in METHODS.items():
        path = FOLDER / f"{key}.md"
        if not path.exists():
            path.write_text(f"# {method.__name__}\n")


def complete(app: "Sphinx", name: str, source: list[str]) -> None:
    """Complete the page of a method."""
    folder, _, key = name.rpartition("/")
    if folder == "methods" and key in METHODS:
        source[0] = page(key, METHODS[key])


def setup(app: "Sphinx") -> dict[str, Any]:
    """Register the extension."""
    app.connect("config-inited", lambda app, config: begin_pages())
    # Before links are rewritten
    app.connect("source-read", complete, priority=400)
    return {"parallel_read_safe": True}
