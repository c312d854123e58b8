"""The pooling that a map was asked for, and the reader that goes with it: the model's own way changes both."""

from wordsens.errors import InputError
from wordsens.maps.transformer.loaded import OwnWay
from wordsens.maps.transformer.pooling import OWN, Pooling
from wordsens.maps.transformer.reader import Reader
from wordsens.maps.transformer.settings import no_settings


def pooled_reading(
    pool: str | None, own: OwnWay | None, reader: Reader | None, name: str
) -> tuple[Reader | None, Pooling | None]:
    """The reader, and the pooling of that name; with "own" the reader follows the model's own files."""
    if pool is None:
        return reader, None
    if pool != OWN:
        return reader, Pooling(pool, (pool,))
    if own is None:
        raise no_settings(name)
    settings = own()
    if reader is not None:
        reader = reader.following(settings)
    elif settings.prompt and not settings.pools_prompt:
        raise InputError(
            f"{name} leaves its prompt out of the pooling, and without a tokenizer it is not known how many rows that "
            "is; pass the tokenizer to TransformerFeatures"
        )
    skipped = 0 if reader is None or settings.pools_prompt or not settings.prompt else reader.leading_tokens
    return reader, Pooling(OWN, settings.parts, skipped, settings.behind, settings.dimensions)
