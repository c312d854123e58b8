"""Maps by name: the registry, maps of one's own and transformers."""

import hashlib
from pathlib import Path

import pytest
import torch
from torch import nn

import wordsens as ws
from wordsens.cli import main
from wordsens.errors import InputError
from wordsens.maps.registry import (
    MAPS,
    MapEntry,
    base_name,
    build_map,
    map_content,
    map_entry,
    map_names,
    map_options,
    map_title,
    option_help,
    option_names,
    recorded_name,
)
from wordsens.sweeps.map_cell import MapCell

CELL_KEYS = MapCell.model_fields
RANDOM = [name for name in MAPS if MAPS[name].family != "transformer"]


@pytest.mark.parametrize("name", RANDOM)
def test_every_name_builds_a_map_that_maps(name):
    phi = build_map(name, 3, 4, seed=1, depth=2)
    assert phi.name == recorded_name(name, depth=2)
    assert base_name(phi.name) == name
    assert map_title(phi.name).startswith(MAPS[name].title)
    features = phi(torch.ones(3, 4, dtype=torch.float64))
    assert features.shape == ((12,) if name in ("rf", "drf") else (3, 4))


@pytest.mark.parametrize("name", RANDOM)
def test_exactly_the_used_options_change_the_features(name):
    text = torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(3, 4)
    usual = build_map(name, 3, 4, seed=0)(text)
    others = {
        "depth": 2,
        "width": 7,
        "activation": "tanh",
        "temperature": 3.0,
        "heads": 2,
        "score": "sigmoid",
        "model_layer": 1,
        "pool": "mean",
    }
    for option, value in others.items():
        changed = build_map(name, 3, 4, seed=0, **{option: value})(text)
        same = changed.shape == usual.shape and torch.equal(changed, usual)
        assert same == (option not in MAPS[name].options), option


def test_every_option_has_a_default_that_is_allowed_and_a_help():
    for name, entry in MAPS.items():
        assert map_options(name).keys() == entry.options.keys() | entry.fixed.keys()
        cell = {key: MapCell.model_fields[key].default for key in entry.options if key in CELL_KEYS}
        assert cell.items() <= map_options(name).items()
    for option in option_names():
        assert not option_help(option).partition(": ")[2].startswith("Default")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("rf", {"width": 0}, r"`width` \(=0\) must be a whole number"),
        ("rf", {"activation": "rulu"}, r"did you mean 'relu'\?"),
        ("drf", {"depth": 10_001}, "must be at most 10,000"),
        ("drf", {"gaussian": "lasy"}, r"did you mean 'lazy'\?"),
        ("raf", {"temperature": -1}, "must be a positive finite number"),
        ("raf", {"heads": None}, r"`heads` \(=None\) must be a whole number"),
        ("transformer", {"norm": "prr"}, r"one of pre, post; did you mean 'pre'\?; or None"),
        ("transformer", {"values": 2}, r"`values` \(=2\) must be of the class bool"),
        ("transformer", {"mlp": -1}, "must be a whole number, at least 0"),
        ("model", {"pool": "men"}, r"did you mean 'mean'\?"),
    ],
)
def test_a_wrong_value_is_refused_before_a_map_is_made(name, options, message):
    with pytest.raises(InputError, match=message):
        map_options(name, **options)


def test_options_of_other_maps_are_left_out():
    assert map_options("relu-raf", depth=0, heads=2) == {
        "temperature": 1.0,
        "heads": 2,
        "score": "relu",
        "head_dimension": None,
    }


NEW_MAP = """
from typing import Annotated
import torch
import wordsens as ws

class Waves(ws.FeatureMap):
    '''phi(X) = sin(scale X), of one shape or another.

    Args:
        scale: multiplies
            the rows.
        shape: of the wave.
    '''

    name = "waves"

    def __init__(self, scale: int = 2, shape: Annotated[str, ("sine", "cosine")] = "sine"):
        self.wave = {"sine": torch.sin, "cosine": torch.cos}[shape]
        self.scale = scale

    def features(self, texts):
        return self.wave(self.scale * texts)
"""


def test_a_new_map_is_a_class_and_one_entry(tmp_path, monkeypatch, capsys):
    (tmp_path / "waves_map.py").write_text(NEW_MAP)
    monkeypatch.syspath_prepend(tmp_path)
    entry = MapEntry("waves", "waves_map:Waves", "dense", "waves", "a wave")
    monkeypatch.setitem(MAPS, "waves", entry)
    X = ws.gaussian_text(3, 4, seed=0).rows
    assert torch.equal(build_map("waves", 3, 4, seed=0)(X), torch.sin(2 * X))
    cosine = build_map("waves(shape=cosine)", 3, 4, seed=0, scale=3)
    assert torch.equal(cosine(X), torch.cos(3 * X)) and cosine.name == "waves(shape=cosine)"
    assert map_title(cosine.name) == "waves, shape=cosine"
    assert {"scale", "shape"} < option_names()
    assert option_help("scale") == "For waves: multiplies the rows. Default: 2."
    for name, message in {
        "waves(shape=sin)": r"`shape` \(='sin'\) must be one of sine, cosine; did you mean 'sine'",
        "waves(scale=x)": r"`scale` \(='x'\) must be of the class int",
        "waves(length=3)": "has no parameter length; waves takes scale, shape",
        "wavs": r"did you mean 'waves'\?",
    }.items():
        with pytest.raises(InputError, match=message):
            map_entry(name)
    assert main(["measure", "I love her", "--map", "waves,waves(scale=1)", "--quiet"]) == 0
    printed = capsys.readouterr().out
    assert "waves, scale=1" in printed


def test_a_list_of_names_is_checked_and_holds_none_twice():
    assert map_names("raf, rf,raf,my.maps:Own") == ["raf", "rf", "my.maps:Own"]
    with pytest.raises(
        InputError, match=r"`map` \(='rff'\) must be one of rf, drf, .*; did you mean 'rf'\?"
    ):
        map_names("rff")
    with pytest.raises(InputError, match=r"`map` \(=','\) must be one of rf, drf"):
        map_names(",")
    with pytest.raises(InputError, match=r"`map` \(='own:'\) must be .* module:Name names a map"):
        map_names("own:")


def test_parameters_in_a_name():
    X = torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(3, 4)
    phi = build_map("raf( heads=2, score=relu )", 3, 4, seed=5, temperature=2.0)
    expected = ws.RandomAttentionFeatures(4, "relu", 5, heads=2, temperature=2.0)
    assert torch.equal(phi(X), expected(X)) and phi.name == "raf(heads=2, score=relu)"
    assert torch.equal(build_map("relu-raf(heads=2,temperature=2.0)", 3, 4, seed=5)(X), phi(X))
    assert map_names("rf, raf(heads=2, score=relu),drf(depth=3)") == [
        "rf",
        "raf(heads=2, score=relu)",
        "drf(depth=3)",
    ]
    assert recorded_name("drf(depth=3)", depth=7) == "drf3"
    assert map_title("raf(heads=2, score=relu)") == "RAF, heads=2, score=relu"
    assert "heads" not in map_entry("raf(heads=2)").options
    for wrong, message in {
        "raf(heads=2, heads=4)": r"alone or with parameters, each once",
        "raf(dept=2)": r"has no parameter dept; raf takes score, temperature, heads",
        "raf(heads=0)": r"`heads` \(=0\) must be a whole number",
        "raf(score=sofmax)": r"`score` \(='sofmax'\) .* did you mean 'softmax'\?",
        "raf(heads)": r"must be a name, alone or with parameters",
        "raf(heads=2": r"must be a name, alone or with parameters",
        "raf(": r"must be a name, alone or with parameters",
        "raf(heads=2, )": r"must be a name, alone or with parameters",
    }.items():
        with pytest.raises(InputError, match=message):
            map_entry(wrong)


SOURCE = """
import torch
from torch import nn
import wordsens as ws

class Scaled(ws.FeatureMap):
    name = "not this one"
    def __init__(self, d, seed, dtype):
        self.dtype = dtype
        self.weight = torch.randn(d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)
    def features(self, texts):
        return texts * self.weight

class Module(nn.Module):
    def forward(self, X):
        return X ** 3

class Needy(Module):
    def __init__(self, hidden):
        super().__init__()

def made(n, d, seed):
    return ws.RandomFeatures(n, d, 5, seed=seed)

def wide(n, d, seed, width):
    return ws.RandomFeatures(n, d, width, seed=seed)

def squares(X):
    return X ** 2

thing = ws.RandomAttentionFeatures(4, seed=3)
number = 3
"""  # noqa: E501


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The name of a module in the current folder."""
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return name


def test_maps_of_ones_own(own):
    X = ws.gaussian_text(3, 4, seed=0).rows
    weight = torch.randn(4, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    expected = {
        "Scaled": X * weight,
        "Module": X**3,
        "made": ws.RandomFeatures(3, 4, 5, seed=7)(X),
        "squares": X**2,
        "thing": ws.RandomAttentionFeatures(4, seed=3)(X),
    }
    for name, features in expected.items():
        phi = build_map(f"{own}:{name}", 3, 4, seed=7)
        assert phi.name == f"{own}:{name}"
        torch.testing.assert_close(phi(X), features)
    wide = build_map(f"{own}:wide(width=6)", 3, 4, seed=7)
    assert (
        torch.equal(wide(X), ws.RandomFeatures(3, 4, 6, seed=7)(X))
        and wide.name == f"{own}:wide(width=6)"
    )
    for name, message in {
        "squares(k=1)": r"takes \(X\): missing a required argument: 'X'",
        "thing(k=1)": "takes no parameters",
        "made(k=1)": r"takes \(n, d, seed\): got an unexpected keyword argument 'k'",
    }.items():
        with pytest.raises(InputError, match=message):
            build_map(f"{own}:{name}", 3, 4, seed=7)
    low = build_map(f"{own}:Scaled", 3, 4, seed=7, dtype=torch.float32)
    assert low(X).dtype == torch.float32
    assert ws.certify(build_map(f"{own}:thing", 3, 4, seed=7), X).shape == (3,)
    assert (
        map_content(f"{own}:squares") == hashlib.sha256(Path(f"{own}.py").read_bytes()).hexdigest()
    )
    assert (map_entry(f"{own}:made").family, map_content("raf")) == ("own", None)


def test_a_transformer_by_name_is_loaded_once(tmp_path):
    from tests.maps.tiny_models import save_tiny

    save_tiny(tmp_path)
    first, second = (
        build_map("model", 1, 1, model=str(tmp_path), model_layer=layer, pool="mean", seed=0)
        for layer in (1, 2)
    )
    assert (first.layer, second.layer, first.dtype) == (1, 2, torch.float32)
    assert first.model is second.model
    content = map_content("model", model=str(tmp_path))
    assert len(content or "") == 64
    assert map_content(f"model(model={tmp_path})") == content
    assert isinstance(first.model.model, nn.Module)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{own}:Needy", r"missing a required argument: 'hidden'; .* write the rest behind"),
        ("{own}:Nothing", "has no attribute 'Nothing'"),
        ("{own}:number", "is a int; give a FeatureMap, a torch module"),
        ("no_such_module:Map", "neither installed nor a file of the current folder"),
    ],
)
def test_what_is_no_map_is_refused(own, name, message):
    with pytest.raises(InputError, match=message):
        build_map(name.format(own=own), 3, 4, seed=0)
