"""The name of a model as a key of a cell."""

from typing import Annotated

from pydantic import AfterValidator

from wordsens.files import named_path


def _absolute(model: str) -> str:
    folder = named_path("model", model)
    return str(folder.absolute()) if folder.is_dir() else model


ModelName = Annotated[str, AfterValidator(_absolute)]
"""minilm, a name on the hub, or a folder, which is kept as an absolute path: a worker may run in another folder."""
