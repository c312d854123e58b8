"""Importing the text package stays light."""

import subprocess
import sys

import pytest

import wordsens.text

HEAVY = ("transformers", "tokenizers", "datasets", "pyarrow", "pandas", "sentence_transformers", "huggingface_hub")


def loaded_after(statement):
    code = f"{statement}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def test_no_heavy_package_is_imported():
    statements = (
        "import wordsens.text",
        "from wordsens.text import embed, read_documents, TransformerEncoder",
        "from wordsens import shipped_reviews; shipped_reviews()",
        "from wordsens import gaussian_text; gaussian_text(3, 4)",
    )
    assert loaded_after("\n".join(statements)) == "[]"  # nothing is ever unloaded


def test_the_check_above_can_fail():
    assert loaded_after("import pyarrow") == "['pyarrow']"


def test_minilm_does_not_load_sentence_transformers():
    loaded = loaded_after("from wordsens import embed; embed('good film')")
    assert "'transformers'" in loaded
    assert "sentence_transformers" not in loaded


def test_every_public_name_exists_and_is_listed_once():
    assert len(set(wordsens.text.__all__)) == len(wordsens.text.__all__)
    assert set(wordsens.text.__all__) <= set(dir(wordsens.text))
    for name in wordsens.text.__all__:
        assert getattr(wordsens.text, name).__name__ == name


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="attribute embedd"):
        _ = wordsens.text.embedd
