"""Functions whose keywords are the fields of a dataclass."""

import inspect
from dataclasses import fields
from typing import get_type_hints

import pytest

import wordsens as ws
from wordsens.text.readers import Reading, ReadingOptions


def test_help_shows_every_option_of_a_reading():
    shown = inspect.signature(ws.read_documents).parameters
    assert [*shown] == ["source", "limit", "sample_seed", *(field.name for field in fields(Reading))]
    assert shown["text_column"].default == "text"
    assert shown["split"].kind is inspect.Parameter.KEYWORD_ONLY


def test_checkers_know_the_same_options():
    assert get_type_hints(ReadingOptions) == get_type_hints(Reading)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="text_colum"):
        ws.read_documents("shipped", text_colum="review")  # pyright: ignore[reportCallIssue]
