"""Maps of one's own by name: the weights that torch draws come from the seed."""

import torch

from wordsens.maps.registry import build_map

LAYER = """
from torch import nn

class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.linear = nn.Linear(d, d)
    def forward(self, X):
        return self.linear(X)

layer = Layer(4)
"""


def test_weights_that_a_class_draws_come_from_the_seed(tmp_path, monkeypatch):
    (tmp_path / "drawn_layers.py").write_text(LAYER)
    monkeypatch.chdir(tmp_path)
    X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    before = torch.get_rng_state()
    outputs = []
    for name, seed in [("Layer", 0), ("Layer", 0), ("Layer", 1), ("layer", 0)]:
        phi = build_map(f"drawn_layers:{name}", 3, 4, seed=seed, dtype=torch.float32)
        outputs.append(phi(X).detach())
        assert torch.equal(torch.get_rng_state(), before)
        torch.rand(5)  # another state of the process
        before = torch.get_rng_state()
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])
    torch.manual_seed(0)
    assert torch.equal(outputs[3], torch.nn.Linear(4, 4)(X))
