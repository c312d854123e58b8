"""The source of a cell's text, as it is written in a spec."""

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
        padded_below: None: texts of n words and more are taken. Else those of fewer than this many words: what they
            lack of n is filled with rows of [PAD], which count as words, as in the code published with the paper.
    """

    encoder: str = "minilm"
    layer: int = 0
    keep_special_tokens: bool = False
    padded_below: Annotated[int, Field(ge=1)] | None = None

    def takes(self, words: int, n: int) -> bool:
        """True for a text of so many words, where texts of n rows are wanted."""
        return words >= n if self.padded_below is None else words < self.padded_below


class ReviewsText(Embedded):
    """A movie review that ships with wordsens."""

    kind: Literal["reviews"] = "reviews"


class DatasetText(Embedded):
    """A text of one's own: a file, a folder or a dataset of the hub, as `wordsens.text.readers` takes it.

    Attributes:
        path: what to read.
        text_column, label_column: the columns of a table; a label column of None is `label`, where labels are needed.
        split: of a source that has splits; None for its training texts.
        limit: how many documents to read; None for all.
    """

    kind: Literal["dataset"] = "dataset"
    path: str
    text_column: str = "text"
    label_column: str | None = None
    split: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None


class GivenText(Embedded):
    """A text itself, as `wordsens measure` has it: every draw is this text; map and search take the cell's own seed.

    Attributes:
        content: the characters.
        source: where it came from; changes no value.
        label: +1, -1 or None; changes no value.
    """

    kind: Literal["given"] = "given"
    content: str
    source: str = ""
    label: Literal[1, -1] | None = None


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


class RepeatedText(StrictModel):
    """Gaussian rows of length sqrt(d), of which `distinct` are different and the others repeat them."""

    kind: Literal["repeated"] = "repeated"
    distinct: Annotated[int, Field(ge=1)]


TextSource = ReviewsText | DatasetText | GivenText | GaussianText | OrthogonalText | CorrelatedText | RepeatedText

TEXT_TYPES: dict[str, type[StrictModel]] = {
    kind.model_fields["kind"].default: kind
    for kind in (ReviewsText, DatasetText, GivenText, GaussianText, OrthogonalText, CorrelatedText, RepeatedText)
}
TEXT_KINDS = tuple(TEXT_TYPES)

_PLACE = ("path", "text_column", "label_column", "split", "limit", "source", "label")
"""Keys that say where real texts lie: their content stands for them in a cell's identity."""

_ROWS = ("encoder", "layer", "keep_special_tokens", "padded_below")
"""Keys that say how texts become rows, where the map does not read them itself."""


def require_own_rows(text: TextSource) -> None:
    """InputError where a text says how it becomes rows, and the map makes them itself."""
    for name in _ROWS:
        if name in text.model_fields_set:
            raise InputError(f"`{name}` is not for the map 'model', which makes the rows of its texts itself; drop it")


def text_identity(text: dict[str, Any], content: str | None, *, own_rows: bool) -> dict[str, Any]:
    """The keys of a text as a cell's identity has them.

    Args:
        text: its keys.
        content: the digest of a real source's texts; None for others.
        own_rows: whether the map makes the rows itself.
    """
    if content is None:
        return text
    left = _PLACE + (_ROWS if own_rows else ())
    if text.get("padded_below") is None:
        left += ("padded_below",)  # cells were named before there was a choice
    return {**{name: value for name, value in text.items() if name not in left}, "content": content}


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
