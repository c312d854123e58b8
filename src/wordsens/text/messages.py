"""Putting the message of another library's error inside one of ours."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message, without its full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".;:") if lines else type(error).__name__
