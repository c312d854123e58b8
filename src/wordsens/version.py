"""The version of wordsens, and the commit that it was installed from."""

import json
from functools import cache
from pathlib import Path

__version__ = "0.3.0"


@cache
def commit() -> str | None:
    """The commit of the checkout that the package lies in, or that pip installed it from; None
    where neither is known.

    Files that were changed since are not seen: the column `code` of a record hashes them.
    """
    git = Path(__file__).parents[2] / ".git"
    try:
        if git.is_file():  # a worktree
            git = Path(git.read_text(encoding="utf-8").removeprefix("gitdir:").strip())
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        shared = (
            git / (git / "commondir").read_text(encoding="utf-8").strip()
            if (git / "commondir").is_file()
            else git
        )
        return _resolved(shared, head.removeprefix("ref: "))
    except OSError:
        return _installed()


def _resolved(git: Path, reference: str) -> str | None:
    if (git / reference).is_file():
        return (git / reference).read_text(encoding="utf-8").strip()
    packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {reference}")), None)


def _installed() -> str | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = json.loads(distribution("wordsens").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    return origin.get("vcs_info", {}).get("commit_id")
