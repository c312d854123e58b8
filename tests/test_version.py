"""The commit of a checkout, a worktree and a package that lies in neither, against git itself."""

import subprocess
from importlib import metadata

import pytest

from wordsens import version


@pytest.fixture
def placed(monkeypatch):
    """A function that asks for the commit of a package in src/wordsens of a folder."""

    def commit(folder):
        monkeypatch.setattr(version, "__file__", str(folder / "src" / "wordsens" / "version.py"))
        return version.commit.__wrapped__()

    return commit


def git(folder, *arguments):
    command = ["git", "-c", "user.name=n", "-c", "user.email=e@e", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_it_is_gits(placed, tmp_path):
    checkout, worktree = tmp_path / "checkout", tmp_path / "worktree"
    checkout.mkdir()
    git(checkout, "init", "--quiet")
    git(checkout, "commit", "--allow-empty", "--message", "one")
    git(checkout, "worktree", "add", "--quiet", "-b", "other", str(worktree))
    git(worktree, "commit", "--allow-empty", "--message", "two")
    assert placed(checkout) == git(checkout, "rev-parse", "HEAD")
    assert placed(worktree) == git(worktree, "rev-parse", "HEAD") != placed(checkout)
    git(checkout, "pack-refs", "--all")
    assert placed(checkout) == git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "--quiet", "--detach")
    assert placed(checkout) == git(checkout, "rev-parse", "HEAD")


def test_a_package_without_one_has_none(placed, tmp_path, monkeypatch):
    monkeypatch.setattr(metadata, "distribution", lambda name: (_ for _ in ()).throw(metadata.PackageNotFoundError))
    assert placed(tmp_path) is None
