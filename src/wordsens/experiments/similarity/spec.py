"""The typed spec of one comparison of similarities."""

import hashlib
import json
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.experiments.similarity.check_pairs import shipped_pairs
from wordsens.experiments.texts.map_cell import MapCell
from wordsens.experiments.texts.source import Embedded
from wordsens.seeds import derive_seed
from wordsens.text.pairs import LENGTHS

SWAPS, CHECK = "swaps", "check"


class SimilarityCell(MapCell):
    """The features of one map, pairs of one kind and length, one draw of weights and passages.

    Attributes:
        map, d, text, draw, ...: see MapCell. A transformer's texts are compared by one vector each, and `pool` says
            which.
        pairs: "swaps", passages of the texts with one word exchanged; or "check", the shipped pairs.
        n: of swaps, the rows of a passage, special tokens left out; of check, the rows up to which texts are padded.
        length: of check: question, paragraph or page.
        count: at most so many passages, or pairs of a kind.
        words: how many words are searched for S, in the first text; 0 for no S.
    """

    KIND: ClassVar[str | None] = "similarity"

    pairs: Literal["swaps", "check"] = SWAPS
    length: str | None = None
    count: Annotated[int, Field(ge=2)] = 16
    words: Annotated[int, Field(ge=0)] = 2

    @model_validator(mode="after")
    def _valid(self) -> "SimilarityCell":
        if (self.pairs == CHECK) != (self.length is not None):
            raise InputError(f"`length` (={self.length!r}) goes with pairs 'check', and `pairs` is {self.pairs!r}")
        if self.length is not None:
            require_choice("length", self.length, LENGTHS)
        if not isinstance(self.text, Embedded):
            raise InputError(f"`text` (={self.text.kind!r}) has no words to exchange; give reviews or a dataset")
        if self.text.keep_special_tokens or self.text.padded_below is not None:
            raise InputError("`text` is cut into passages here; drop keep_special_tokens and padded_below")
        if self.reads_texts_itself and self.pool is None:
            raise InputError("`pool` is missing: texts of a transformer are compared by one vector each; give mean")
        return self

    @property
    def encoder(self) -> str:
        """The encoder whose tokens are counted."""
        assert isinstance(self.text, Embedded), "others are refused"
        return self.model if self.reads_texts_itself else self.text.encoder

    @property
    def pairs_seed(self) -> int:
        """The seed of the choice of pairs: every map sees the same ones. Those of check are the same in every draw."""
        if self.pairs == CHECK:
            return derive_seed(self.seed, "similarity", CHECK)
        return derive_seed(self.seed, "similarity", self.draw)

    def layers_of(self) -> tuple[Any, ...] | None:
        """Equal for cells that pool the layers of one model on the same texts, which are read once."""
        if not self.reads_texts_itself:
            return None
        return (self.model, self.pool, self.dtype, self.pairs, self.n, self.length, self.count, self.pairs_seed)

    def content_of(self, source: Embedded) -> str:
        """The digest of the texts, or of the shipped pairs."""
        if self.length is None:
            return super().content_of(source)
        told = json.dumps([pair.row() for pair in shipped_pairs(self.length)], sort_keys=True, default=str)
        return hashlib.sha256(told.encode()).hexdigest()
