"""Deleting and masking words: what the model says of the changed tokens."""

import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.maps.function import FunctionFeatures
from wordsens.sensitivity.removals import row_removal

SENTENCE = "the film was unlikely good"


def phi_of(kind="bert", **options):
    return ws.TransformerFeatures(model_of(kind), tokenizer(), name=kind, **options)


@torch.no_grad()
def mean_of(kind, ids):
    return model_of(kind)(torch.tensor([ids])).last_hidden_state.mean(dim=1)[0].double()


@pytest.mark.parametrize("kind", ["bert", "llama"])
@pytest.mark.parametrize("way", ["delete", "mask"])
def test_a_removal_is_the_model_reading_what_is_left(kind, way):
    found = ws.removal_effects(phi_of(kind, pool="mean"), SENTENCE, way=way)
    ids = tokenizer()(SENTENCE)["input_ids"]
    before = mean_of(kind, ids)
    rows = {"the": [1], "film": [2], "was": [3], "unlikely": [4, 5, 6], "good": [7]}
    assert [word.text for word in found.whole] == list(rows)
    for at, own in enumerate(rows.values()):
        left = [4 if place in own else number for place, number in enumerate(ids)]
        if way == "delete":
            left = [number for place, number in enumerate(ids) if place not in own]
        after = mean_of(kind, left)
        assert float(found.per_word[at]) == pytest.approx(
            float((after - before).norm() / before.norm()), rel=1e-5
        )
        cosine = float(torch.cosine_similarity(after, before, dim=0))
        assert float(found.distance[at]) == pytest.approx(1 - cosine, abs=1e-6)


def test_chosen_words_small_batches_and_rows_kept():
    phi = phi_of(pool="mean")
    whole = ws.removal_effects(phi, SENTENCE)
    part = ws.removal_effects(phi, ws.Document(SENTENCE), [3, 0], memory_budget=1)
    assert part.words == (3, 0)
    torch.testing.assert_close(part.per_word, whole.per_word[[3, 0]], rtol=1e-5, atol=1e-6)
    every_row = ws.removal_effects(phi_of(), SENTENCE, way="mask")
    assert bool((every_row.per_word > 0).all())


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        (
            {},
            {},
            "`way` (='delete') changes the number of rows, and phi keeps every row; choose a pool, "
            "or way='mask'",
        ),
        ({"pool": "mean"}, {"way": "drop"}, "`way` (='drop') must be one of delete, mask"),
        (
            {"pool": "mean"},
            {"words": [5]},
            "`words` (=[5]) must name words from 0 to 4, at least one",
        ),
    ],
)
def test_what_cannot_be_removed_is_refused(options, arguments, message):
    with pytest.raises(ws.InputError) as caught:
        ws.removal_effects(phi_of(**options), SENTENCE, **arguments)
    assert str(caught.value) == message


def test_a_text_of_one_word_and_a_model_without_a_mask_token():
    with pytest.raises(
        ws.InputError, match="the text has one word, and nothing is left without it"
    ):
        ws.removal_effects(phi_of(pool="mean"), "good")
    phi = phi_of(pool="mean")
    phi.model.tokenizer = type(
        "Unmasked",
        (),
        {"mask_token_id": None, "__call__": lambda self, *a, **b: tokenizer()(*a, **b)},
    )()
    with pytest.raises(
        ws.InputError, match="needs a mask token, but bert layer 3 mean has none; use way='delete'"
    ):
        ws.removal_effects(phi, SENTENCE, way="mask")


def test_features_without_a_row_are_compared_row_by_row_or_as_they_are():
    X, phi = ws.gaussian_text(5, 8, seed=0), ws.RandomAttentionFeatures(8, seed=0)
    scores = X.rows @ phi.weight @ X.rows.T / 8**0.5
    whole = torch.softmax(scores, dim=1) @ X.rows
    kept = [0, 1, 3, 4]
    left = torch.softmax(scores[kept][:, kept], dim=1) @ X.rows[kept]
    assert abs(row_removal(phi, X, 2) - float((left - whole[kept]).norm() / whole.norm())) < 1e-12
    pooled = FunctionFeatures(lambda rows: rows.mean(dim=-2), batched=True)
    change = X.rows[kept].mean(dim=0) - X.rows.mean(dim=0)
    assert abs(row_removal(pooled, X, 2) - float(change.norm() / X.rows.mean(dim=0).norm())) < 1e-12
