"""The part of a transformer that a map reads: the states of a layer or of one head, pooled or not, or an answer."""

from dataclasses import dataclass, replace

from wordsens.errors import InputError, require_choice
from wordsens.maps.transformer.own_input import INPUTS
from wordsens.maps.transformer.pooling import POOL_NAMES
from wordsens.maps.transformer.stack import Stack

OUTPUTS = ("states", "logits", "probabilities")


@dataclass(frozen=True)
class Readout:
    """A choice of layer, head, pooling and output; see TransformerFeatures for each."""

    layer: int = -1
    head: int | None = None
    pool: str | None = None
    output: str = "states"
    input: str = INPUTS[0]

    def of(self, stack: Stack, name: str) -> "Readout":
        """This choice with the layer counted from 0. InputError for what the model, called `name`, does not have."""
        if not -stack.layers - 1 <= self.layer <= stack.layers:
            raise InputError(
                f"`layer` (={self.layer}) is not a layer of {name}, which has layers 0 (embeddings) to "
                f"{stack.layers}; negative numbers count from the last, -1"
            )
        layer = self.layer % (stack.layers + 1)
        if self.head is not None and (layer == 0 or not 0 <= self.head < stack.heads):
            raise InputError(
                f"`head` (={self.head}) of layer {layer} does not exist; {name} has heads 0 to {stack.heads - 1} in "
                f"layers 1 to {stack.layers}"
            )
        if require_choice("output", self.output, OUTPUTS) != "states":
            stack.require_task_head(self.output, layer, self.head, self.pool)
        if require_choice("input", self.input, INPUTS) != INPUTS[0] and (
            layer == 0 or self.pool is not None or self.output != "states"
        ):
            raise InputError(
                f"`input` (={self.input!r}) is of the attention of a layer from 1 on; leave pool and output out"
            )
        if self.pool is not None:
            require_choice("pool", self.pool, POOL_NAMES)
        return replace(self, layer=layer)

    def title(self, name: str) -> str:
        """The name of the map that reads this of the model called `name`."""
        parts = [name, f"layer {self.layer}" if self.output == "states" else self.output]
        parts += [] if self.input == INPUTS[0] else ["attention"]
        parts += [] if self.head is None else [f"head {self.head}"]
        return " ".join([*parts, *([] if self.pool is None else [self.pool])])

    @property
    def all_rows(self) -> bool:
        """True where all states of a layer are read as they are."""
        return self.pool is None and self.head is None and self.output == "states" and self.input == INPUTS[0]
