"""Where the text of a cell comes from, as it is written in a spec."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wordsens.errors import InputError, require_choice
from wordsens.experiments.grid.strict_model import StrictModel


class Embedded(StrictModel):
    """Real texts, embedded word by word.

    Attributes:
        encoder: the name or path of the encoder.
        layer: 0 is the embedding layer's output.
        keep_special_tokens: whether [CLS] and [SEP] count as words.
    """

    encoder: str = "minilm"
    layer: int = 0
    keep_special_tokens: bool = False


class ReviewsText(Embedded):
    """A movie review that ships with wordsens."""

    kind: Literal["reviews"] = "reviews"


class DatasetText(Embedded):
    """A text of one's own: a file, a folder or a dataset of the hub, as `wordsens.text.readers` takes it.

    Attributes:
        path: what to read.
        text_column: the column of a table.
        split: of a source that has splits; None for its training texts.
        limit: how many documents to read; None for all.
    """

    kind: Literal["dataset"] = "dataset"
    path: str
    text_column: str = "text"
    split: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None


class GaussianText(StrictModel):
    """Rows with iid N(0, 1) entries, rescaled to sqrt(d)."""

    kind: Literal["gaussian"] = "gaussian"


class OrthogonalText(StrictModel):
    """Orthogonal rows of length sqrt(d); needs n <= d."""

    kind: Literal["orthogonal"] = "orthogonal"


class CorrelatedText(StrictModel):
    """Rows of length sqrt(d) with a chosen mean cosine."""

    kind: Literal["correlated"] = "correlated"
    mean_cosine: Annotated[float, Field(ge=0, lt=1)]


TextSource = ReviewsText | DatasetText | GaussianText | OrthogonalText | CorrelatedText

TEXT_KINDS = ("reviews", "dataset", "gaussian", "orthogonal", "correlated")


def spelled_out(value: Any) -> Any:
    """A bare kind (`text: gaussian`) as the dictionary it stands for; the kind is checked.

    >>> spelled_out("gaussian")
    {'kind': 'gaussian'}
    """
    described = {"kind": value} if isinstance(value, str) else value
    if isinstance(described, dict):
        if "kind" not in described:
            raise InputError(f"`text` (={described!r}) has no kind; give one of {', '.join(TEXT_KINDS)}")
        require_choice("kind", described["kind"], TEXT_KINDS)
    return described
