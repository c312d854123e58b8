"""MultiVectorEncoders of sentence-transformers (ColBERT)."""

from typing import Any

from wordsens.models.identity import UNKNOWN, content_digest, joined_digest
from wordsens.models.pairs import FunctionPairModel
from wordsens.models.reader import TextReader
from wordsens.models.sentence_transformer import evaluating, most_tokens, reading_module
from wordsens.text.whole_words import Span


class MultiVectorModel(FunctionPairModel):
    """A MultiVectorEncoder: the first text is the query, the second the document; scores are those
    of its own `similarity_pairwise`, such as MaxSim.

    Args:
        model: the object, on its own device.
        name: for tables and records.
        batch_size: pairs at a time.
    """

    def __init__(self, model: Any, *, name: str, batch_size: int = 32):
        super().__init__(self._compared, name=name, batch_size=batch_size)
        self._model = model
        self._readers = [self._reader(task) for task in ("query", "document")]

    def _reader(self, task: str) -> TextReader:
        module = reading_module(self._model, task)
        prompt, limit = self._model.prompts.get(task) or "", most_tokens(module, task)
        options = {"prompt": prompt, "limit": limit, "cuts": True}
        return TextReader(module.tokenizer, module.auto_model, self.name, **options)

    def identity(self) -> str:
        content = content_digest(self._model)
        if content is None:
            return UNKNOWN
        prompts = self._model.prompts, self._model.default_prompt_name
        return joined_digest(content, self._model.similarity_fn_name, *prompts)

    def read_spans(self, first: str, second: str) -> tuple[Span, Span]:
        query, document = self._readers
        return query.read_span(first), document.read_span(second)

    def _compared(self, first: list[str], second: list[str]) -> Any:
        for texts, reader in zip((first, second), self._readers, strict=True):
            for text in texts:
                reader.read(text)
        model, options = self._model, {"show_progress_bar": False}
        with evaluating(model):
            queries = model.encode_query(first, batch_size=self._batch_size, **options)
            documents = model.encode_document(second, batch_size=self._batch_size, **options)
            return model.similarity_pairwise(queries, documents)
