"""Maps by name."""

import pytest
import torch

from wordsens.errors import InputError
from wordsens.maps.registry import (
    MAP_NAMES,
    MapOptions,
    build_map,
    map_names,
    map_title,
    options_used_by,
)


@pytest.mark.parametrize("name", MAP_NAMES)
def test_every_name_builds_a_map_that_maps(name):
    phi = build_map(name, 3, 4, options=MapOptions(depth=2), seed=1)
    assert phi.name == ("drf2" if name == "drf" else name)
    features = phi(torch.ones(3, 4, dtype=torch.float64))
    assert features.shape == ((12,) if name in ("rf", "drf") else (3, 4))


@pytest.mark.parametrize("name", MAP_NAMES)
def test_exactly_the_used_options_change_the_features(name):
    text = torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(3, 4)
    usual = build_map(name, 3, 4, options=MapOptions(), seed=0)(text)
    others = {"depth": 2, "width": 7, "activation": "tanh", "temperature": 3.0}
    for option, value in others.items():
        changed = build_map(name, 3, 4, options=MapOptions(**{option: value}), seed=0)(text)
        same = changed.shape == usual.shape and torch.equal(changed, usual)
        assert same == (option not in options_used_by(name)), option


def test_a_list_of_names_is_checked_and_holds_none_twice():
    assert map_names("raf, rf,raf") == ["raf", "rf"]
    with pytest.raises(InputError, match=r"`map` \(='rff'\) must be one of rf, drf, .*; did you mean 'rf'\?"):
        map_names("rff")
    with pytest.raises(InputError, match=r"`map` \(=','\) names no map; choose from rf, drf"):
        map_names(",")


def test_titles():
    assert [map_title(name) for name in ("rf", "drf8", "relu-raf", "linear-raf", "my-map")] == [
        "RF",
        "DRF, L = 8",
        "ReLU-RAF",
        "linear RAF",
        "my-map",
    ]
