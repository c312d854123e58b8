"""The table of where a Hugging Face transformer keeps its parts: its blocks, and each block's attention."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from wordsens.errors import InputError


@dataclass(frozen=True)
class Family:
    """The attribute paths of one family of architectures.

    Attributes:
        blocks: from the base model to its list of blocks.
        output: from a block to the projection that ends its attention, whose input is the heads side by side.
        projections: from a block to the projections to queries, keys and values, or to the one that makes all three;
            none where scores depend on places besides.
    """

    blocks: str
    output: str
    projections: tuple[str, ...] = ()


_BERT = Family(
    "encoder.layer",
    "attention.output.dense",
    ("attention.self.query", "attention.self.key", "attention.self.value"),
)
_LLAMA = Family("layers", "self_attn.o_proj")

FAMILIES = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "electra": _BERT,
    "distilbert": Family(
        "transformer.layer", "attention.out_lin", ("attention.q_lin", "attention.k_lin", "attention.v_lin")
    ),
    "mpnet": Family("encoder.layer", "attention.attn.o"),
    "modernbert": Family("layers", "attn.Wo"),
    "gpt2": Family("h", "attn.c_proj", ("attn.c_attn",)),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
}
"""By the `model_type` of a model's configuration."""


@dataclass(frozen=True)
class Anatomy:
    """The parts of one model.

    Attributes:
        base: the model without the head for its task.
        blocks: its layers, in order.
        outputs: the projection that ends each block's attention.
        projections: those of each block to queries, keys and values, or to all; None where they are not all of it.
        heads: attention heads a block.
    """

    base: nn.Module
    blocks: tuple[nn.Module, ...]
    outputs: tuple[nn.Module, ...]
    projections: tuple[tuple[nn.Module, ...], ...] | None
    heads: int

    def head_slice(self, block: int, head: int) -> tuple[slice, Tensor]:
        """The columns of the projection's input that belong to a head, and its part (head size, d) of the weight."""
        projection = self.outputs[block]
        weight: Any = projection.weight
        # GPT-2 keeps weights input first; linear layers output first.
        turned = weight.T if isinstance(projection, nn.Linear) else weight
        size = turned.shape[0] // self.heads
        columns = slice(head * size, (head + 1) * size)
        return columns, turned[columns]


def anatomy_of(model: Any, name: str) -> Anatomy:
    """The parts of the model.

    Raises:
        InputError: an architecture that is not in the table, or one with an encoder and a decoder.
    """
    kind = model.config.model_type
    family = FAMILIES.get(kind)
    if family is None:
        raise InputError(
            f"the model {name!r} has the architecture {kind!r}, whose parts are not known; use one of "
            f"{', '.join(sorted(FAMILIES))}, or wrap the model in FunctionFeatures"
        )
    base = model.base_model
    blocks = _at(base, family.blocks)
    outputs = tuple(_at(block, family.output) for block in blocks)
    projections = tuple(tuple(_at(block, path) for path in family.projections) for block in blocks)
    known = projections if family.projections else None
    return Anatomy(base, tuple(blocks), outputs, known, int(model.config.num_attention_heads))


def _at(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module
