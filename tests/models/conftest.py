"""Folders of tiny random models, so that no test needs the network."""

import pytest

from tests.maps.tiny_models import save_tiny


@pytest.fixture
def save(tmp_path_factory):
    """A function that saves a tiny model with its tokenizer; it returns the folder's name."""
    return lambda *kind, **changes: save_tiny(tmp_path_factory.mktemp("model"), *kind, **changes)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """The folder of a BERT with 3 layers, 16 coordinates and a context of 24 tokens."""
    return save_tiny(tmp_path_factory.mktemp("tiny-bert"))
