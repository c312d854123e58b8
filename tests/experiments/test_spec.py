"""The spec of a cell: what it refuses, and a hash that changes exactly when the result could."""

import json

import pytest

from wordsens.errors import InputError
from wordsens.experiments.sensitivity.spec import SensitivityCell
from wordsens.experiments.store.record import hash_identity

RF = {"map": "rf", "n": 4, "d": 8, "text": "gaussian"}
RAF = {"map": "raf", "n": 4, "d": 8, "text": "gaussian"}


def cell(base, **changes):
    return SensitivityCell.parse({**base, **changes})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dephts": 2}, "`key` (='dephts') must be one of map, n, d, depth,"),
        ({"dephts": 2}, "did you mean 'depth'?"),
        ({"map": "rff"}, "map: `map` (='rff') must be one of rf, drf, raf,"),
        ({"n": 1}, "`n` (=1) must be greater than or equal to 2"),
        ({"n": "4"}, "`n` (='4') must be a valid integer"),
        ({"n": True}, "`n` (=True) must be a valid integer"),
        ({"radius": 0}, "`radius` (=0) must be greater than 0"),
        ({"radius": float("nan")}, "`radius` (=nan) must be"),
        ({"dtype": "float16"}, "`dtype` (='float16') must be 'float64' or 'float32'"),
        ({"search": "quik"}, "`search` (='quik') must be one of quick, normal, thorough; did you mean 'quick'?"),
        ({"activation": "rleu"}, "did you mean 'relu'?"),
        ({"gaussian": "sparse"}, "`gaussian` (='sparse') must be one of auto, dense, lazy"),
        ({"words": "al"}, "`words` (='al') must be one of all; did you mean 'all'?"),
        ({"words": {"sample": 2, "indices": [0]}}, "`words` has both a sample and indices"),
        ({"words": {"indices": [4]}}, "`words` has 4, but the text has n = 4 words; indices run from 0 to 3"),
        ({"text": "gausian"}, "`kind` (='gausian') must be one of reviews, dataset, given, gaussian,"),
        ({"text": {"encoder": "minilm"}}, "has no kind; give one of reviews"),
        ({"text": {"kind": "correlated"}}, "`text.correlated.mean_cosine` is missing"),
        ({"text": {"kind": "correlated", "mean_cosine": 1.0}}, "(=1.0) must be less than 1"),
        ({"text": {"kind": "reviews", "layr": 1}}, "did you mean 'layer'?"),
        ({"temperature": 2.0}, "`temperature` (=2.0) is not an option of the map 'rf', which takes activation,"),
        ({"depth": 2}, "`depth` (=2) is not an option of the map 'rf'"),
        ({"sampled": 2}, "`sampled` (=2) is the number of words searched beside `contenders`; give both"),
        ({"contenders": 2}, "`contenders` (=2) is for maps of several layers and attention"),
        ({"contenders": 0}, "`contenders` (=0) must be greater than or equal to 1"),
    ],
)
def test_a_mistake_is_one_line_with_key_value_and_rule(change, message):
    with pytest.raises(InputError) as caught:
        cell(RF, **change)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_key_is_named():
    with pytest.raises(InputError, match=r"^a\.yaml: `map` is missing; give it a value$"):
        SensitivityCell.parse({"n": 4, "d": 8, "text": "gaussian"}, where="a.yaml")


@pytest.mark.parametrize(
    "change",
    [
        {"n": 5},
        {"d": 9},
        {"draw": 1},
        {"seed": 1},
        {"width": 7},
        {"activation": "tanh"},
        {"gaussian": "lazy"},
        {"words": {"sample": 2}},
        {"words": {"indices": [0]}},
        {"radius": 2.0},
        {"search": "quick"},
        {"starts": 1},
        {"steps": 1},
        {"generations": 1},
        {"tolerance": 0.1},
        {"dtype": "float32"},
        {"device": "cuda"},
        {"text": "orthogonal"},
        {"text": {"kind": "correlated", "mean_cosine": 0.5}},
        {"text": "reviews"},
        {"text": {"kind": "reviews", "layer": 1}},
        {"map": "drf"},
        {"map": "drf", "depth": 2},
    ],
)
def test_whatever_can_change_the_result_changes_the_hash(change):
    assert cell(RF, **change).content_hash() != cell(RF).content_hash()


def test_the_usual_effort_is_not_in_the_name():
    assert cell(RF, search="normal").content_hash() == cell(RF).content_hash()


def test_the_changes_above_cover_every_key():
    reached = {"n", "d", "draw", "seed", "width", "activation", "gaussian", "words", "radius", "starts", "steps"}
    reached |= {"search", "generations", "tolerance", "dtype", "device", "text", "map", "depth"}
    reached |= {"model", "model_layer", "pool"}  # test_a_transformer_is_known_by_its_content
    of_attention = {"temperature": {"temperature": 2.0}, "contenders": {"contenders": 1}}
    of_attention["sampled"] = {"contenders": 1, "sampled": 1}
    assert set(SensitivityCell.model_fields) - reached == set(of_attention)
    assert len({cell(RAF, **change).content_hash() for change in ({}, *of_attention.values())}) == 4


def test_what_cannot_change_the_result_does_not_change_the_hash():
    assert cell(RF, activation="relu").content_hash() == cell(RF).content_hash()
    assert cell(RF, text={"kind": "gaussian"}).content_hash() == cell(RF).content_hash()
    assert cell(RF, device="cpu").content_hash() == cell(RF).content_hash()
    assert cell(RF, device="cuda:1").content_hash() == cell(RF, device="cuda").content_hash()
    assert cell(RF, words="all").content_hash() == cell(RF).content_hash()
    assert cell(RF, radius=2).content_hash() == cell(RF, radius=2.0).content_hash()
    assert set(json.loads(cell(RAF).identity())).isdisjoint({"depth", "width", "activation", "gaussian"})


def test_a_dataset_is_known_by_its_content_not_its_path(tmp_path):
    for folder, text in (("a", "good film"), ("b", "good film"), ("c", "bad film")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.txt").write_text(text)
    a, b, c = (
        cell(RAF, text={"kind": "dataset", "path": str(tmp_path / name / "one.txt")}).content_hash() for name in "abc"
    )
    assert a == b != c


def test_a_given_text_is_known_by_its_content():
    def of(content, **keys):
        return cell(RAF, text={"kind": "given", "content": content, **keys}).content_hash()

    assert of("a film") == of("a film", source="my.txt", label=1) == of("a film", encoder="minilm")
    assert len({of("a film"), of("A film"), of("a film", layer=1), of("a film", keep_special_tokens=True)}) == 4
    assert cell(RAF, search="normal").identity() == cell(RAF).identity()


def test_a_transformer_is_known_by_its_content(tmp_path):
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text("other" if folder == "c" else "{}")

    def of(folder, **keys):
        return cell({"map": "model", "model": str(tmp_path / folder), "n": 4, "d": 8, "text": "reviews"}, **keys)

    assert of("a").content_hash() == of("b").content_hash() != of("c").content_hash()
    assert len({of("a", **keys).content_hash() for keys in ({}, {"model_layer": 1}, {"pool": "mean"})}) == 3
    assert not {"encoder", "layer", "keep_special_tokens"} & set(json.loads(of("a").identity())["text"])
    with pytest.raises(InputError, match="`layer` is not for the map 'model'"):
        of("a", text={"kind": "reviews", "layer": 2})


def test_a_map_of_ones_own_is_known_by_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        (tmp_path / f"own_spec_{number}.py").write_text(f"def phi(X):\n    return X * {number}\n")
    one, two = (json.loads(cell(RF, map=f"own_spec_{number}:phi").identity()) for number in (1, 2))
    assert one["map_content"] != two["map_content"]
    assert not {"depth", "width", "activation", "gaussian", "temperature", "model"} & set(one)


def test_the_identity_is_json_whose_hash_is_the_name():
    one = cell(RF)
    assert json.loads(one.identity())["schema"] == 1
    assert hash_identity(one.identity()) == one.content_hash()


def test_the_hash_of_a_cell_is_the_same_in_every_session():
    # Pinned: a change here abandons every record on users' disks; then SCHEMA_VERSION must rise too.
    assert cell(RF).content_hash() == "919c5550c46a29bf285b8d6319d02d66"
