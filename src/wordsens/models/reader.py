"""Texts as a model reads them: the tokens after its prompt, and what is cut."""

from typing import Any

from torch import nn

from wordsens.errors import InputError, argument, require_characters
from wordsens.models.hooks import embedding_rows
from wordsens.models.tokens import (
    Tokenization,
    longest_part,
    require_known,
    require_rows,
    spelled,
    tokenization_of,
)
from wordsens.text.whole_words import Span

_AROUND = 16
"""More special tokens than any tokenizer puts around a text."""


class TextReader:
    """A tokenizer with the limits of the model that reads its tokens.

    Args:
        tokenizer: of the transformers library; None for a model that is only given rows.
        model: the transformer without a head.
        name: for messages.
        prompt: a string that is put before every text.
        limit: the largest number of tokens; the model's own limit holds too.
        cuts: whether a text that is longer than the context is cut, as models that embed texts do,
            or refused.

    Attributes:
        context: the largest number of tokens that the model reads, special ones included; None if
            there is no limit.
        padding: the [PAD] token as (number, string); None if there is none.
        leading_tokens, own_tokens: the tokens before a text, and those around it, special ones and
            those of the prompt.
        table: the number of rows of the model's table of tokens; None if it has none.
    """

    name: str
    tokenizer: Any = None
    prompt: str = ""
    cuts: bool = False
    context: int | None = None
    table: int | None = None
    padding: tuple[int, str] | None = None
    leading_tokens: int = 0
    own_tokens: int = 0
    _frame: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    _dynamic: bool = False

    def __init__(
        self,
        tokenizer: Any,
        model: Any,
        name: str,
        *,
        prompt: str = "",
        limit: int | None = None,
        cuts: bool = False,
    ):
        self.tokenizer, self.name = tokenizer, name
        self.prompt, self.cuts = prompt, cuts
        self.table = embedding_rows(model)
        limits = [each for each in (_context_of(tokenizer, model), limit) if each]
        self.context = min(limits, default=None)
        self._dynamic = "'dynamic'" in str(getattr(model.config, "rope_parameters", None))
        if tokenizer is not None:
            self._read_frame()

    def _read_frame(self) -> None:
        """Learn from the tokenizer which tokens it puts around a text."""
        ids = self.tokenizer("")["input_ids"]
        mask = self.tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
        leading = mask.index(0) if 0 in mask else 0
        self._frame = tuple(ids[:leading]), tuple(ids[leading:])
        prompt = self.tokenizer(self.prompt, add_special_tokens=False, verbose=False)["input_ids"]
        self.leading_tokens, self.own_tokens = leading + len(prompt), len(ids) + len(prompt)
        if self.tokenizer.pad_token is not None:
            self.padding = self.tokenizer.pad_token_id, self.tokenizer.pad_token

    def tokenize(self, text: str, where: str | None = None) -> Tokenization:
        """All tokens of the text after the prompt, special tokens included; nothing is cut.

        Args:
            where: the name of the text in messages.

        Raises:
            InputError: a text with too many unknown tokens, or a model without a tokenizer.
        """
        where = where or f"the text {text[:40]!r}"
        if self.tokenizer is None:
            raise InputError(f"{self.name} has no tokenizer; pass one, or give rows")
        require_characters(where, text)
        fast = bool(getattr(self.tokenizer, "is_fast", False))
        # Models that cut texts give the vectors of their own `encode`, which reads the begin token
        # twice if a chat template writes it too.
        begin = None if self.cuts else self.tokenizer.bos_token
        encoded = self.tokenizer(
            self.prompt + text,
            add_special_tokens=begin is None or not text.startswith(begin),
            return_special_tokens_mask=True,
            return_offsets_mapping=fast,
            verbose=False,
        )
        ids = encoded["input_ids"]
        special, offsets = encoded["special_tokens_mask"], encoded.get("offset_mapping")
        tokens = spelled(self.tokenizer, ids)
        found = tokenization_of(text, ids, tokens, special, offsets, prompt=self.prompt)
        require_known(found, self.tokenizer.unk_token_id, where=where, name=self.name)
        require_rows(ids, self.table, self.tokenizer, f"{where} in {self.name}")
        return found

    def read(
        self,
        text: str,
        where: str | None = None,
        max_words: int | None = None,
        *,
        cuts: bool | None = None,
    ) -> Tokenization:
        """The tokens that the model reads of the text: all, or those that fit its context.

        Args:
            where: the text, in messages.
            max_words: a longer text keeps its first tokens, special ones not counted.
            cuts: whether a longer text is cut; None: as the reader is made.

        Raises:
            InputError: what `tokenize` raises; a text without a token, or one that is longer than
                the context and not cut.
        """
        where = where or f"the text {text[:40]!r}"
        whole = self.tokenize(text, where)
        if whole.words == 0:
            raise InputError(f"{where} has no token: it is empty or only blanks; leave it out")
        if max_words is not None:
            whole = whole.first_words(max_words)
        start, stop = self._excess(whole)
        if start == stop:
            return whole
        around = whole.leading + whole.trailing
        if around >= (self.context or 0):
            raise InputError(
                f"the prompt of {self.name} ({self.prompt!r}) leaves no room in its {self.context} "
                "tokens"
            )
        # Beyond its context a dynamic rotary base follows the longest text that was read so far.
        if self._dynamic or not (self.cuts if cuts is None else cuts):
            raise InputError(
                f"{where} has {whole.words} tokens and {self.name} adds {around}, but its context "
                f"is {self.context} tokens; shorten it, or pass "
                f"{argument('max_words', len(whole.ids) - around - (stop - start))} or less"
            )
        return whole.without(start, stop)

    def _excess(self, whole: Tokenization) -> Span:
        """The places of the tokens for which the context has no room; of a tokenizer that cuts on
        the left, those at the front."""
        excess = 0 if self.context is None else max(0, len(whole.ids) - self.context)
        if _cuts_on_the_left(self.tokenizer):
            return len(self._frame[0]), len(self._frame[0]) + excess
        return whole.own.stop - excess, whole.own.stop

    def count_tokens(self, text: str, *, special: bool = True) -> int:
        """The number of tokens of the whole text; with `special`, special ones and those of the
        prompt included."""
        tokens = self.tokenize(text)
        return len(tokens.ids) if special else tokens.words

    def read_span(self, text: str) -> Span:
        bytes_at_most = len((self.prompt + text).encode(errors="replace")) + _AROUND
        if self.context is None or bytes_at_most <= self.context:
            return 0, len(text)
        whole, context = self.tokenize(text, "the text"), self.context
        start, stop = self._excess(whole)
        if start == stop:
            return 0, len(text)
        left = _cuts_on_the_left(self.tokenizer)
        if whole.offsets is None or not any(begin for begin, _ in whole.offsets):
            return longest_part(text, lambda part: self.count_tokens(part) <= context, left=left)
        return (whole.offsets[stop - 1][1], len(text)) if left else (0, whole.offsets[start][0])

    def unreadable(self, text: str) -> str | None:
        try:
            self.read(text, "the text")
        except InputError as error:
            return str(error).removeprefix("the text: ")
        return None


def _context_of(tokenizer: Any, model: Any) -> int | None:
    """The largest number of tokens that tokenizer, configuration and position table all allow."""
    limits = [
        getattr(tokenizer, "model_max_length", None),
        getattr(model.config, "max_position_embeddings", None),
    ]
    for name, module in model.named_modules():
        # RoBERTa and its kin count positions from the number after their padding's.
        table = name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
        if table and module.padding_idx is not None:
            limits.append(module.num_embeddings - module.padding_idx - 1)
    # Tokenizers without a limit say 1e30.
    known = [int(limit) for limit in limits if limit is not None and 0 < limit < 1e9]
    return min(known, default=None)


def _cuts_on_the_left(tokenizer: Any) -> bool:
    """True if a text that is too long loses its beginning."""
    return getattr(tokenizer, "truncation_side", "right") == "left"
