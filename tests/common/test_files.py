import errno
import io
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from sb3_cesd.common import versions
from sb3_cesd.common.files import (
    dump_with_checksum,
    load_with_checksum,
    save_figure_whole,
    with_suffix,
    write_text_whole,
    written_whole,
)
from sb3_cesd.common.versions import installed_versions, warn_of_other_versions

REMEDY = "Save it again."


def load(content):
    return load_with_checksum(io.BytesIO(content), "The file x", REMEDY)


@pytest.fixture
def content():
    file = io.BytesIO()
    dump_with_checksum({"a": np.arange(300), "b": "text"}, file)
    return file.getvalue()


def test_the_previous_file_stays_whole_whatever_goes_wrong(tmp_path):
    path = tmp_path / "file"
    write_text_whole(path, "previous")
    with pytest.raises(KeyError), written_whole(path) as file:
        file.write(b"half of the n")
        raise KeyError
    assert path.read_text() == "previous"
    assert os.listdir(tmp_path) == ["file"], "nothing is left behind"
    write_text_whole(path, "new")
    assert path.read_text() == "new"


def test_a_full_disk_is_named_though_a_library_hides_it(tmp_path):
    path = tmp_path / "file"
    path.write_text("previous")
    with pytest.raises(OSError, match=r"could not be written .*untouched: free some space") as caught, written_whole(path):
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            raise RuntimeError("unexpected pos") from None
    assert caught.value.errno == errno.ENOSPC
    assert path.read_text() == "previous"


def test_an_error_from_before_is_not_that_of_the_disk(tmp_path):
    try:
        open(tmp_path / "nothing")
    except FileNotFoundError:
        with pytest.raises(TypeError, match="not JSON serializable"), written_whole(tmp_path / "file"):
            json.dumps(object)


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such modes")
def test_permissions_stay(tmp_path):
    path = tmp_path / "file"
    write_text_whole(path, "previous")
    path.chmod(0o600)
    write_text_whole(path, "next")
    assert path.stat().st_mode & 0o777 == 0o600 and path.read_text() == "next"


def test_what_a_killed_process_left_is_deleted(tmp_path):
    (tmp_path / ".file.1a2b3c4d.unfinished").write_bytes(b"x" * 1000)
    (tmp_path / ".file_2.1a2b3c4d.unfinished").write_bytes(b"of another file")
    write_text_whole(tmp_path / "file", "new")
    assert sorted(os.listdir(tmp_path)) == [".file_2.1a2b3c4d.unfinished", "file"]
    assert (tmp_path / "file").read_text() == "new"


def test_of_two_that_write_at_once_the_last_wins(tmp_path):
    """Each writes aside, and neither deletes what the other has not finished."""
    path = tmp_path / "file"
    with written_whole(path) as slow:
        slow.write(b"slow and ")
        with written_whole(path) as fast:
            fast.write(b"fast")
        assert path.read_text() == "fast"
        slow.write(b"steady")
    assert path.read_text() == "slow and steady" and os.listdir(tmp_path) == ["file"]


WRITER = """
import sys
from sb3_cesd.common.files import written_whole
for number in range(30):
    with written_whole(sys.argv[1]) as file:
        for _ in range(50):
            file.write(sys.argv[2].encode() * 2000)
"""


def test_processes_that_write_one_path_leave_a_whole_file(tmp_path):
    path = tmp_path / "file"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), letter]) for letter in "abc"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            seen.add(path.read_text())
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    seen.add(path.read_text())
    assert seen <= {letter * 100_000 for letter in "abc"}
    assert os.listdir(tmp_path) == ["file"]


def test_figures_are_written_whole(tmp_path):
    path = tmp_path / "figure.png"
    save_figure_whole(Figure(), path, dpi=10)
    written = path.read_bytes()
    assert written.startswith(b"\x89PNG")

    class Broken(Figure):
        def savefig(self, file, **kwargs):
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        save_figure_whole(Broken(), path)
    assert path.read_bytes() == written and os.listdir(tmp_path) == ["figure.png"]


def test_folders_are_made_and_links_kept(tmp_path):
    write_text_whole(tmp_path / "a" / "b" / "file", "text")
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b" / "file")
    write_text_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a" / "b" / "file").read_text() == "new"
    with pytest.raises(IsADirectoryError, match="pass the name of a file"):
        write_text_whole(tmp_path / "a", "text")


def test_names_without_a_suffix_get_one(tmp_path):
    assert with_suffix(tmp_path / "model", ".zip") == tmp_path / "model.zip"
    assert with_suffix(tmp_path / "model.pth", ".zip") == tmp_path / "model.pth"


def test_objects_come_back_also_by_pickle_alone(content):
    assert (load(content)["a"] == np.arange(300)).all()
    assert pickle.loads(content)["b"] == "text"
    # From where the file stands
    file = io.BytesIO(b"before" + content)
    file.seek(6)
    assert load_with_checksum(file, "x", REMEDY)["b"] == "text"


def test_no_flipped_bit_and_no_missing_byte_loads(content):
    for byte in range(len(content)):
        damaged = bytearray(content)
        damaged[byte] ^= 1 << (byte % 8)
        with pytest.raises(ValueError, match=r"The file x is .*(damaged|not complete).* Save it again\."):
            load(bytes(damaged))
        with pytest.raises(ValueError, match=r"The file x is not complete.* Save it again\."):
            load(content[:byte])


def test_nothing_of_a_damaged_file_is_unpickled(tmp_path):
    class Crafted:
        def __reduce__(self):
            return open, (str(tmp_path / "made"), "w")

    with pytest.raises(ValueError, match="written by another program"):
        load(pickle.dumps(Crafted()))
    assert not (tmp_path / "made").exists()


def test_what_is_not_installed_is_named(monkeypatch):
    file = io.BytesIO()
    gone = type("Gone", (), {"__module__": versions.__name__})
    monkeypatch.setattr(versions, "Gone", gone, raising=False)
    dump_with_checksum(gone(), file)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"can't be imported here .*Gone.*: install it, or define it"):
        load(file.getvalue())


def test_versions_of_all_that_matters():
    assert set(installed_versions()) == {"sb3_cesd", "stable_baselines3", "torch", "mujoco", "python"}


def test_other_major_versions_are_told_once_for_all(recwarn):
    here = installed_versions()
    warn_of_other_versions("model.zip", here)
    warn_of_other_versions("model.zip", {**here, "torch": here["torch"].split(".")[0] + ".0.0"})
    warn_of_other_versions("model.zip", {})
    assert not recwarn
    with pytest.warns(UserWarning, match=r"saved with torch 1.13.0 \(here .*\), mujoco 99.0 .*install these"):
        warn_of_other_versions("model.zip", {**here, "torch": "1.13.0", "mujoco": "99.0", "gone": "1"})
