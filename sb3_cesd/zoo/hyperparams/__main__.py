"""
Print the entries of a config, e.g. ``python -m sb3_cesd.zoo.hyperparams cesd_laptop Walker-v0``.

``python -m sb3_cesd.zoo.hyperparams template`` prints a yml file for your own environment.
"""

import argparse
from pathlib import Path

import yaml

from sb3_cesd.zoo.hyperparams import configs, entries, read_entry

TEMPLATE = "template"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sb3_cesd.zoo.hyperparams", description="Print hyperparameters.")
    parser.add_argument(
        "config", choices=[*configs(), TEMPLATE], help=f"name of a config, or {TEMPLATE} for a yml file to start from"
    )
    parser.add_argument("env", nargs="?", help="id of an environment (default: all of them)")
    args = parser.parse_args()
    if args.config == TEMPLATE:
        print((Path(__file__).parent / f"{TEMPLATE}.yml").read_text(), end="")
        return
    shown = entries(args.config) if args.env is None else {args.env: read_entry(args.config, args.env)}
    print(yaml.safe_dump(shown, sort_keys=False, default_flow_style=None, width=127), end="")


if __name__ == "__main__":
    main()
