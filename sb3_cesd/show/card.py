"""A model card in Markdown for the Hugging Face Hub: what the skills of a model do, and how to use it."""

from collections.abc import Sequence

from sb3_cesd.show.labels import meaning
from sb3_cesd.show.result import SkillShow
from sb3_cesd.show.tables import cell, skill_rows

#: How to use an exported policy
EXPORTED_USAGE = """## Usage without running code of the files

```python
import gymnasium as gym
from huggingface_hub import hf_hub_download
from sb3_cesd.export import import_policy

policy = import_policy(hf_hub_download("{repo_id}", "{policy}"))
env = gym.make("{env_id}"{env_kwargs})  # import the package that registers it first{wrapping}
observation, _ = env.reset()
action, _ = policy.predict(observation, skill={skill})
```

`{policy}` contains numbers and a description. Loading it runs no code.
"""
#: A line for environments with wrappers
WRAPPING = "\n# Here wrap it as in training: {}"
#: How to use a model in RL Zoo
ZOO_USAGE = """## Usage with RL Zoo

RL Zoo unpickles the model, as SB3 does: a crafted file can run any code. `TRUST_REMOTE_CODE=True` says that you trust the
author.

```sh
export TRUST_REMOTE_CODE=True
python -m rl_zoo3.load_from_hub --algo {algorithm} --env {env_id} -orga {organization} -name {name} -f logs
python -m rl_zoo3.enjoy --algo {algorithm} --env {env_id} -f logs
python -m sb3_cesd.show logs/{algorithm}/{env_name}_1/{env_name}.zip
```
"""


def describe_skills(shown: SkillShow, picture: str, is_task: bool) -> str:
    """
    Describe what a model does by a picture, metrics and an episode of each skill.

    :param shown: what its skills do
    :param picture: where the picture is, relative to the card
    :param is_task: whether one of the skills learned the task of the environment
    :return: Markdown
    """
    learned = (
        f"Skill {shown.labels[0]} acts. It has learned the task of this environment."
        if is_task
        else f"{shown.n_skills} skills, learned without the reward of the environment. `skill` chooses one."
    )
    parts = [f"# {shown.title}", learned, f"![What each skill does]({picture})", *shown.notes]
    if shown.metrics:
        rows = [
            [
                f"`{name}`",
                *(cell(column, name) for column in shown.columns.values()),
                meaning(name, shown.n_skills, shown.kind),
            ]
            for name in shown.metrics
        ]
        parts += ["## Metrics", shown.compared, table(["metric", *shown.columns, "meaning"], rows)]
    header, *episodes = skill_rows(shown.rollouts, shown.labels)
    parts += ["## An episode of each skill", table(header, episodes)]
    return "\n\n".join(parts) + "\n"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """
    Make a table.

    :param header: names of the columns
    :param rows: cells, without vertical bars
    :return: Markdown
    """
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, ["---"] * len(header), *rows])
