"""What is different without ``fcntl``: open files are neither moved nor deleted, and there are no locks."""

import os
import time

import pytest

from sb3_cesd.checkpoints import folders
from sb3_cesd.common import command_line, files
from sb3_cesd.common.files import write_text_whole, written_whole
from sb3_cesd.skill_ddpg.load_errors import explain_no_file


@pytest.fixture(autouse=True)
def without_locks(monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)


def open_elsewhere(monkeypatch, n_times):
    """Refuse the first moves, as if another program had the file open; return the number of moves so far."""
    moves, move = [], os.replace

    def replace(source, target):
        moves.append(target)
        if len(moves) <= n_times:
            raise PermissionError(13, "Access is denied")
        move(source, target)

    monkeypatch.setattr(os, "replace", replace)
    return moves


def test_a_file_that_another_program_has_open_for_a_moment_is_replaced(tmp_path, monkeypatch):
    write_text_whole(tmp_path / "file", "previous")
    moves = open_elsewhere(monkeypatch, n_times=2)
    write_text_whole(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new" and len(moves) == 3


def test_one_that_stays_open_is_named_and_untouched(tmp_path, monkeypatch):
    write_text_whole(tmp_path / "file", "previous")
    monkeypatch.setattr(files, "PATIENCE", 0.1)
    open_elsewhere(monkeypatch, n_times=1000)
    with pytest.raises(PermissionError, match="untouched: close the programs that have it open"):
        write_text_whole(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "previous" and os.listdir(tmp_path) == ["file"]


def test_where_files_can_be_locked_a_move_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", object())
    moves = open_elsewhere(monkeypatch, n_times=1000)
    with pytest.raises(PermissionError):
        files.move(tmp_path / "a", tmp_path / "b")
    assert len(moves) == 1


def test_what_a_killed_process_left_is_deleted_once_it_is_old(tmp_path):
    fresh, old = tmp_path / ".file.1.unfinished", tmp_path / ".file.2.unfinished"
    for path in (fresh, old):
        path.write_text("half")
    an_hour_ago = time.time() - 3600
    os.utime(old, (an_hour_ago, an_hour_ago))
    with written_whole(tmp_path / "file") as file:
        file.write(b"whole")
    assert sorted(os.listdir(tmp_path)) == [fresh.name, "file"]


def test_an_old_checkpoint_that_is_open_does_not_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 0.0)
    first, second, third = (tmp_path / f"{folders.PREFIX}{step:012d}" for step in (1, 2, 3))
    move = os.replace

    def replace(source, target):
        if source == first:
            raise PermissionError(13, "Access is denied")
        move(source, target)

    def write(target):
        with folders.new_checkpoint(target, keep=1) as folder:
            (folder / folders.MANIFEST).write_text("{}")

    write(first)
    with monkeypatch.context() as another_program:
        another_program.setattr(os, "replace", replace)
        write(second)
    assert folders.checkpoints_in(tmp_path) == [first, second]
    write(third)
    assert folders.checkpoints_in(tmp_path) == [third], "the next call deletes it"


def test_a_missing_drive_is_refused(monkeypatch):
    """Its parent is itself, unlike in a file system with one root."""

    class Drive:
        parent = property(lambda self: self)

        def absolute(self):
            return self

        def exists(self):
            return False

        def is_dir(self):
            return False

    monkeypatch.setattr(command_line, "Path", lambda text: Drive())
    with pytest.raises(command_line.argparse.ArgumentTypeError, match="can't be written to: pass a folder"):
        command_line.output_folder("Z:\\")


def test_a_folder_in_place_of_a_file_is_named(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"")
    for path, error in ((tmp_path, ValueError), (tmp_path / "model.zip", PermissionError)):
        with pytest.raises(error), explain_no_file(path, "of a model"):
            raise PermissionError(13, "Permission denied")
