"""
setuptools' build backend, whose wheels also carry the start-up hook for RL Zoo at their root.

setuptools has no option for files at the root of site-packages that works for wheels and for editable installs alike.
"""

import base64
import hashlib
import zipfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

HOOK_FILES = ("_sb3_cesd_rl_zoo3.py", "sb3_cesd_rl_zoo3.pth", "sb3_cesd_rl_zoo3.start")


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    name = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    add_hook(Path(wheel_directory) / name)
    return name


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    # A plain path, which type checkers and editors read, in place of code that finds the package when Python starts
    settings = {"editable_mode": "compat", **(config_settings or {})}
    name = build_meta.build_editable(wheel_directory, settings, metadata_directory)
    add_hook(Path(wheel_directory) / name)
    return name


def add_hook(wheel: Path) -> None:
    """
    :param wheel: path of a wheel, rewritten with the hook files and their entries in RECORD
    """
    with zipfile.ZipFile(wheel) as archive:
        entries = {info: archive.read(info) for info in archive.infolist()}
    hook = {name: Path(name).read_bytes() for name in HOOK_FILES}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in entries.items():
            if info.filename.endswith(".dist-info/RECORD"):
                lines = [record_line(name, content) for name, content in hook.items()]
                content = "".join(lines).encode() + content
                for name, hook_content in hook.items():
                    # As readable as the others, whoever unpacks it
                    entry = zipfile.ZipInfo(name, info.date_time)
                    entry.external_attr, entry.compress_type = info.external_attr, info.compress_type
                    archive.writestr(entry, hook_content)
            archive.writestr(info, content)


def record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"
