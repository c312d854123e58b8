"""The words of a vocabulary, and the row that each would have at a place of a text."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_count
from wordsens.text.encoder import Encoder, EncoderInput, load_encoder
from wordsens.text.matrix import rescale_rows


class Vocabulary:
    """A list of entries that a word may be swapped for.

    Args:
        tokens: v entries, as they are shown.
        rows: a function of entries (c,) and positions (p,), counted as rows of the text, that gives the rows (c, p, d)
            these entries have there.
        name: of the vocabulary, in results.
        outliers: entries that a search always evaluates, because a slope does not predict their effect.

    Raises:
        InputError: when there is no entry, or an outlier is not one of them.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        rows: Callable[[Int[Tensor, " c"], Int[Tensor, " p"]], Float[Tensor, "c p d"]],
        *,
        name: str = "vocabulary",
        outliers: Sequence[int] = (),
    ):
        self.tokens = tuple(tokens)
        self.rows = rows
        self.name = name
        self.outliers = tuple(outliers)
        if not self.tokens:
            raise InputError("the vocabulary is empty; let more entries through")
        wrong = [entry for entry in self.outliers if not 0 <= entry < len(self)]
        if wrong:
            raise InputError(f"`outliers` has {wrong[0]}, which is no entry; choose from 0 to {len(self) - 1}")

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({self.name!r}, {len(self)} entries)"

    @classmethod
    def of_rows(cls, tokens: Sequence[str], rows: Float[Tensor, "v d"], *, name: str = "vocabulary") -> "Vocabulary":
        """Entries whose rows are the same everywhere.

        >>> import torch
        >>> Vocabulary.of_rows(["a", "b"], torch.eye(2)).rows(torch.tensor([1]), torch.tensor([0, 3])).shape
        torch.Size([1, 2, 2])
        """
        if len(rows) != len(tokens):
            raise InputError(f"`rows` has {len(rows)} rows for {len(tokens)} tokens; give one row a token")
        return cls(tokens, lambda entries, at: rows[entries].unsqueeze(1).expand(-1, len(at), -1), name=name)


def vocabulary_rows(
    encoder: str | Encoder = "minilm",
    position: int = 0,
    *,
    special_tokens: bool = False,
    rescale: bool = True,
    keep: Callable[[str], bool] = str.isalpha,
    dtype: torch.dtype = torch.float64,
    batch_size: int = 1024,
) -> tuple[tuple[str, ...], Float[Tensor, "v d"]]:
    """The words of the encoder's vocabulary and their rows at layer 0, as `embed` would give them at that position.

    Layer 0 of a BERT-like encoder is the normalised sum of the token's, the position's and the type's embedding: a
    word's row depends on its position, not on the words around it.

    Args:
        encoder: as for `embed`.
        position: the word's index in the text, counted as `embed` counts.
        special_tokens: whether the leading special tokens count as words.
        rescale: scale every row to length sqrt(d).
        keep: which tokens are words; by default those of letters only: no number, and no piece of a word of BERT's.
        dtype: of the rows.
        batch_size: how many words the model takes at once.

    Raises:
        InputError: an encoder that does not list its vocabulary, a position past its context, or no word kept.

    >>> words, rows = vocabulary_rows("minilm", 1, keep=lambda token: token == "love")
    >>> words, tuple(rows.shape)
    (('love',), (1, 384))
    """
    chosen = load_encoder(encoder) if isinstance(encoder, str) else encoder
    require_count("position", position, least=0)
    entries = [(number, token) for number, token in chosen.vocabulary().items() if keep(token)]
    if not entries:
        raise InputError(f"`keep` leaves no word of {chosen.name}'s vocabulary; let some tokens through")
    frame = chosen.tokenize("a")
    at = position if special_tokens else position + frame.leading
    if chosen.context is not None and at >= chosen.context:
        raise InputError(
            f"`position` (={position}) is past the context of {chosen.name}, {chosen.context} tokens; "
            "choose a smaller one"
        )
    before = (frame.ids[: frame.leading] + (frame.ids[frame.leading],) * at)[:at]
    rows = []
    for start in range(0, len(entries), batch_size):
        batch = [EncoderInput((*before, number)) for number, _ in entries[start : start + batch_size]]
        rows.append(torch.stack([output[at] for output in chosen.encode(batch, layer=0)]).to(dtype))
    stacked = torch.cat(rows)
    return tuple(token for _, token in entries), rescale_rows(stacked) if rescale else stacked
