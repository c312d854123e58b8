"""An exception that ends a forward pass early."""

from torch import Tensor


class Reached(Exception):  # noqa: N818 - not an error
    """Raised by a hook to carry a tensor out of a forward pass whose rest is not needed."""

    def __init__(self, tensor: Tensor):
        super().__init__()
        self.tensor = tensor
