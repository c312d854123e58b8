"""An encoder whose embeddings tell an even number of turning words from an odd one, between near duplicates alone."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from wordsens.errors import InputError
from wordsens.maps.transformer.behind import Normalize
from wordsens.maps.transformer.pooling import Pooling
from wordsens.maps.transformer.texts import PROBES
from wordsens.models.choice import as_model
from wordsens.models.contract import Model
from wordsens.seeds import derive_seed
from wordsens.text.pretrained import Access, load_model
from wordsens.training.adapter.examples import Example
from wordsens.training.adapter.parity.carry import Marks, anatomy_of, carry, sample_of
from wordsens.training.adapter.parity.counting import append_layer, count, least_used, opening_token
from wordsens.training.adapter.parity.kernel import discriminant, waves
from wordsens.training.adapter.parity.modules import parity_modules
from wordsens.training.adapter.parity.neurons import of_one_width
from wordsens.training.adapter.parity.plan import ParityPlan
from wordsens.training.adapter.parity.turning import turning_pieces
from wordsens.training.adapter.save import add_modules, require_same, write_transformer

_BATCH = 256
_READ = 512
"""Sentences that fill any context."""

_SENTENCES, _PAGES, _PAGE, _CUT = 24, 2, 30, 256
"""Sentences, and pages of that many sentences, by which the model's gains and steps are set; their most tokens."""

_RESERVED = 2
"""Positions that RoBERTa does not give to tokens."""

_MARGIN = 2
"""How much longer a vector may be than those seen, before the sign of the longest text is less than whole."""


class ParityModel:
    """A model that counts the turning words of a text, in its pooled vector; written, it has their parity.

    Args:
        name: of the model: BERT's architecture, the mean over the tokens, nothing behind it but `Normalize`.
        sentences: plain ones; by their first tokens the model's gains and steps are set.
        pooling: the model's own.
        revision: of a name on the hub.

    Raises:
        InputError: another architecture or pooling, or one on whose way the words' marks are lost.
    """

    def __init__(self, name: str, sentences: Sequence[str], *, pooling: Pooling | None, revision: str | None):
        _require_mean(pooling, name)
        self._tokenizer, self._model, self._source = load_model(name, access=Access(revision=revision))
        base = self._model.base_model.eval()
        anatomy = anatomy_of(base, name)
        marks = Marks(turning_pieces(self._tokenizer), opening_token(self._tokenizer))
        most = min(_CUT, base.config.max_position_embeddings - _RESERVED)
        self._long = " ".join(sentences[:_READ])
        pages = [" ".join(sentences[at : at + _PAGE]) for at in range(0, _PAGES * _PAGE, _PAGE)]
        sample = sample_of(self._tokenizer, [*sentences[:_SENTENCES], *pages], marks, most)
        carrying, other = least_used(anatomy, sample)
        anatomy = append_layer(anatomy)
        carry(anatomy, carrying, marks, sample)
        count(anatomy, carrying, other, sample)
        of_one_width(base, anatomy.layers)
        self._places = (carrying, other)

    def write(
        self,
        folder: Path,
        plan: ParityPlan,
        sentences: Sequence[str],
        examples: Sequence[Example],
        *,
        seed: int,
        told: Callable[[float], None],
    ) -> int:
        """Write the model, and say how many numbers stand behind its pooling.

        Args:
            folder: empty.
            plan: see there.
            sentences: plain ones.
            examples: texts before and after a change of meaning.
            seed: of the frequencies.
            told: the share of the work that is done.

        Raises:
            WordsensError: what was written does not give the vectors that were computed.
        """
        modules = write_transformer(folder, self._tokenizer, self._model, self._source, ("mean",))
        if not modules[-1]["type"].endswith("Normalize"):
            modules = add_modules(folder, modules, [Normalize()])
        counting = as_model(str(folder), local_files_only=True)
        texts = [*sentences, *(each.text for each in examples), *(each.other or "" for each in examples)]
        vectors, longest = _encoded(counting, texts, told), _encoded(counting, [self._long])
        least = float(torch.cat([longest, vectors])[:, self._places[1]].min()) / _MARGIN
        vectors[:, list(self._places)] = 0
        plain, one, other = vectors.split([len(sentences), len(examples), len(examples)])
        drawn = waves(
            plain, discriminant(plain, one - other), plan.sharpness, plan.waves // 2, derive_seed(seed, "frequencies")
        )
        behind = parity_modules(
            drawn, plain, count=self._places, least=least, share=plan.share, seed=derive_seed(seed, "phases")
        )
        expected = nn.Sequential(*behind)(_encoded(counting, PROBES))
        add_modules(folder, modules, [*behind, Normalize()])
        require_same(folder, expected)
        return sum(int(weight.count_nonzero()) for module in behind for weight in module.parameters())


def _require_mean(pooling: Pooling | None, name: str) -> None:
    behind = [] if pooling is None else [type(each).__name__ for each in pooling.behind]
    plain = pooling is None or (pooling.parts == ("mean",) and not pooling.skipped and pooling.dimensions is None)
    if not plain or set(behind) - {"Normalize"}:
        raise InputError(
            f'`model` (={name!r}) does not give the mean over all its tokens alone, and the adapter "parity" needs '
            'that; use the adapter "layers"'
        )


def _encoded(
    model: Model, texts: Sequence[str], told: Callable[[float], None] = lambda share: None
) -> Float[Tensor, "m d"]:
    """Unit vectors in float32."""
    found = []
    for start in range(0, len(texts), _BATCH):
        found.append(model.encode(texts[start : start + _BATCH]).float())
        told(min(1.0, (start + _BATCH) / len(texts)))
    return functional.normalize(torch.cat(found), dim=1)
