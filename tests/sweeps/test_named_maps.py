"""Cells of maps beside the random ones: transformers and maps of one's own, measured and
learned."""

import pytest
import torch

import wordsens as ws
from tests.made_records import attempted, measured
from tests.maps.tiny_models import save_tiny
from wordsens.seeds import derive_seed
from wordsens.sweeps.measurement import measure_sensitivity
from wordsens.sweeps.sweep import parse_sweep, study_named


@pytest.fixture
def model(tmp_path):
    """A folder with a tiny model, and one with texts of its words."""
    folder = tmp_path / "model"
    save_tiny(folder)
    words = ("good", "bad", "long", "short")
    rows = "".join(
        f"the film was {a} and not {b},{int(a < b)}\n" for a in words for b in words if a != b
    )
    (tmp_path / "texts.csv").write_text(f"review,sign\n{rows}")
    return tmp_path


def cells(kind, model, **keys):
    text = {
        "kind": "dataset",
        "path": str(model / "texts.csv"),
        "text_column": "review",
        "label_column": "sign",
    }
    usual = {
        "map": "model",
        "model": str(model / "model"),
        "n": 7,
        "d": 16,
        "text": text,
        "starts": 2,
        "steps": 3,
    }
    return study_named(kind).Cell.parse({**usual, **keys})


def test_a_transformer_in_a_sensitivity_cell(model):
    cell = cells("sensitivity", model, model_layer=2, pool="mean", dtype="float32")
    record = measured(cell)
    phi = ws.TransformerFeatures.from_pretrained(str(model / "model"), layer=2, pool="mean")
    (source,) = [
        one
        for one in ws.read_documents(
            str(model / "texts.csv"), text_column="review", label_column="sign"
        )
        if one.source == record.source
    ]
    X = phi.embed(source, max_words=5)[0]
    seed = derive_seed(0, "search", "dataset", 7, 16, 0)
    expected = ws.word_sensitivity(phi, X, seed=seed, search=ws.SearchPlan(starts=2, steps=3))
    assert record.value == pytest.approx(expected.value, rel=1e-5)
    assert (record.words, record.word, record.label) == (7, expected.word, source.label)
    assert record.map == phi.name
    assert (record.encoder, record.temperature, record.activation, record.predicted) == (
        None,
        None,
        None,
        None,
    )
    assert record.radius == pytest.approx(float(X.rows[record.word].norm()), rel=1e-5)


def test_sizes_that_do_not_fit_the_model_are_one_line(model):
    wrong = (
        ({"d": 8}, "d must be 16"),
        ({"n": 2}, "no word beside the 2 tokens"),
        ({"n": 99}, r"has `n` \(=99\) words"),
    )
    for keys, message in wrong:
        cell = cells("sensitivity", model, **keys)
        with pytest.raises(ws.InputError, match=message):
            measured(cell)
    cell = cells("sensitivity", model, n=99)
    failed = attempted(cell)
    assert (failed.status, failed.map) == ("failed", f"{model / 'model'} layer -1")


def test_a_transformer_and_drf_are_learned_too(model):
    usual = {"texts": 3, "held_out": 2, "ridge": 1e-3, "dtype": "float64"}
    cell = cells("generalization", model, model_layer=1, **usual)
    record = measured(cell)
    assert (record.map, record.features) == (f"{model / 'model'} layer 1", 7 * 16)
    assert record.value is not None and record.label in (1, -1)
    drf = {
        "map": "drf",
        "depth": 2,
        "n": 3,
        "d": 4,
        "text": "gaussian",
        "labels": "linear",
        "starts": 2,
        "steps": 3,
    }
    record = measured(type(cell).parse({**drf, **usual}))
    assert (record.map, record.features) == ("drf2", 12)
    with pytest.raises(
        ws.InputError, match=r"`gaussian` \(='dense'\) is not an option of the map 'drf'"
    ):
        type(cell).parse({**drf, **usual, "gaussian": "dense"})


def test_a_sweep_over_a_model_s_layers(model):
    text = f"""
name: layers
common: {{model: {model / "model"}, pool: mean, n: 4, d: 16, text: gaussian, starts: 1, steps: 1}}
grids: [{{map: model, model_layer: [0, 1, 3]}}]
"""
    records = [measured(cell) for cell in parse_sweep(text).cells()]
    assert [record.map.rpartition("layer ")[2] for record in records] == [
        "0 mean",
        "1 mean",
        "3 mean",
    ]
    assert len({record.cell for record in records}) == 3
    # The mean of the rows themselves: one row moves by its own norm, sqrt(d).
    rows = ws.gaussian_text(4, 16, derive_seed(0, "text", 4, 16, 0)).rows
    assert records[0].value == pytest.approx(
        float(4 / 4 / torch.linalg.vector_norm(rows.mean(dim=0))), rel=1e-3
    )


def little_memory(n, d, seed):
    """RF that remembers the answers for three words in four of a text of 20 words in 16
    coordinates."""
    return ws.RandomFeatures(n, d, gaussian="lazy", gaussian_bytes=2 << 20, seed=seed)


def much_memory(n, d, seed):
    """The same matrix."""
    return ws.RandomFeatures(n, d, gaussian="lazy", seed=seed)


@pytest.mark.parametrize("kind", ["sensitivity", "correlations"])
def test_a_matrix_that_forgets_searched_words_gives_every_column(kind):
    keys = {"text": "gaussian", "n": 20, "d": 16}
    little, much = (
        measured(study_named(kind).Cell.parse({**keys, "map": f"{__name__}:{made.__name__}"}))
        for made in (little_memory, much_memory)
    )
    assert little.value == pytest.approx(much.value, rel=1e-6)
    assert little.average == pytest.approx(much.average, rel=1e-9)
    assert little.average < little.value


def test_the_average_is_the_mean_change_by_random_perturbations():
    cell = study_named("sensitivity").Cell.parse({"map": "rf", "text": "gaussian", "n": 6, "d": 40})
    columns = measure_sensitivity(cell)
    phi, rows, generator = cell.build(), columns["arrays"]["rows"], torch.Generator().manual_seed(1)
    changes = []
    for word in range(6):
        for delta in torch.randn(200, 40, generator=generator, dtype=torch.float64):
            moved = rows.clone()
            moved[word] += 40**0.5 * delta / delta.norm()
            changes.append(float((phi(moved) - phi(rows)).norm() / phi(rows).norm()))
    assert columns["average"] == pytest.approx(sum(changes) / len(changes), rel=0.05)
