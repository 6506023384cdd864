"""Files are written completely or not at all, and say so if they can't be read."""

import errno
import os
import pickle

import pytest

from sb3_cesd.common.files import dump_whole, load_pickle, with_suffix, written_whole


def write_whole(path, text):
    with written_whole(path) as file:
        file.write(text.encode())


def test_the_previous_file_stays_whole_whatever_goes_wrong(tmp_path):
    path = tmp_path / "folder" / "file"
    write_whole(path, "previous")
    with pytest.raises(KeyError), written_whole(path) as file:
        file.write(b"half of the n")
        raise KeyError
    # PyTorch hides the error of the disk
    with pytest.raises(OSError, match="file could not be written") as caught, written_whole(path) as file:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            raise RuntimeError("unexpected pos") from None
    assert caught.value.errno == errno.ENOSPC
    assert path.read_text() == "previous" and os.listdir(path.parent) == ["file"]
    write_whole(path, "new")
    assert path.read_text() == "new"


def test_suffixes(tmp_path):
    assert with_suffix(tmp_path / "model", ".zip") == tmp_path / "model.zip"
    assert with_suffix(tmp_path / "model.pth", ".zip") == tmp_path / "model.pth"


def test_what_a_pickle_does_not_hold_is_named(tmp_path):
    path = tmp_path / "numbers.pkl"
    dump_whole([1, 2], path)
    assert load_pickle(path, list) == [1, 2]
    with pytest.raises(ValueError, match="numbers"):
        load_pickle(path, dict)
    for content in (b"", b"text", path.read_bytes()[:-1], pickle.dumps(3).replace(b"K", b"c")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="numbers"):
            load_pickle(path, list)
    with pytest.raises(FileNotFoundError):
        load_pickle(tmp_path / "missing.pkl", list)
