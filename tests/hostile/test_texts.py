"""Texts, tables and models that are wrong in ways that no reader of ours makes: one line, and at
once."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wordsens as ws
from wordsens.errors import InputError
from wordsens.text import Document, read_documents
from wordsens.text.pairs import read_pairs

HALF = "half a pair \ud800 here"


def refusal(call):
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    return message


@pytest.mark.parametrize(
    "call",
    [
        lambda model: Document(HALF),
        lambda model: ws.embed([HALF], encoder=model),
        lambda model: ws.TransformerFeatures.from_pretrained(model).embed([HALF]),
        lambda model: ws.TransformerFeatures.from_pretrained(model, pool="mean").encode([HALF]),
        lambda model: ws.explain(model, HALF),
        lambda model: ws.explain(model, "good film", HALF),
        lambda model: ws.check(
            model, pairs=[("k", "good film", HALF, False), ("k", "a", "b", True)]
        ),
        lambda model: ws.check(lambda texts: [[1.0]] * len(texts), pairs=[(HALF, "a", "b", False)]),
    ],
)
def test_half_a_pair_of_surrogates_is_no_text(tiny_bert, call):
    assert r"'\ud800') is half of a pair, no character; save it as UTF-8" in refusal(
        lambda: call(str(tiny_bert))
    )


@pytest.mark.parametrize("read", [read_documents, read_pairs])
def test_strings_of_parquet_that_are_not_utf8(tmp_path, read):
    given = pa.array([b"ok", b"\xff\xfe"], pa.binary())
    strings = pa.StringArray.from_buffers(2, *given.buffers()[1:])
    rest = {"kind": ["k", "k"], "second": ["x", "y"], "same": [True, False]}
    pq.write_table(pa.table({"text": strings, "first": strings, **rest}), tmp_path / "a.parquet")
    assert "cannot be read as Parquet: 'utf-8' codec can't decode" in refusal(
        lambda: read(tmp_path / "a.parquet")
    )


@pytest.mark.parametrize(
    "use",
    [
        lambda name: ws.embed(["very splendid"], encoder=name),
        lambda name: ws.TransformerFeatures.from_pretrained(name).embed(["very splendid"]),
        lambda name: ws.explain(name, "very splendid"),
    ],
)
def test_a_token_past_the_models_table(tiny_bert, tmp_path, use):
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.add_tokens(["splendid"])
    tokenizer.save_pretrained(tmp_path)
    AutoModel.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    message = refusal(lambda: use(str(tmp_path)))
    assert "the token 'splendid' has the number" in message
    assert "use the tokenizer that belongs to the model" in message
