"""Controls of a training: what they add to the loss, or do to the texts, to raise or lower word
sensitivity."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, require_count, require_positive
from wordsens.seeds import Seed, generator
from wordsens.studies.control.networks import TextNetwork
from wordsens.studies.control.tasks import TextPairs
from wordsens.training.penalty import MovedTexts, SensitivityPenalty, ascend


class Control:
    """A control of word sensitivity during training. By itself it changes nothing."""

    def texts(
        self,
        network: TextNetwork,
        rows: Float[Tensor, "b n d"],
        labels: Float[Tensor, " b"],
        step: int,
    ) -> Float[Tensor, "b n d"]:
        """The texts that the network is shown in that step in place of these."""
        return rows

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"]) -> Tensor | None:
        """A differentiable number that is added to the loss of a step; None for nothing."""
        return None


class SensitivityControl(Control):
    """weight * penalty(X) is added to the loss of every step."""

    def __init__(self, penalty: SensitivityPenalty, weight: float = 1.0):
        self.penalty, self._weight = penalty, require_positive("weight", weight)

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"]) -> Tensor:
        return self._weight * self.penalty(rows)


class AdversarialWords(Control):
    """A random word of every training text is moved so that the loss rises most; the label stays.

    The Delta, ‖Delta‖ <= share sqrt(d), is what a few steps of projected ascent find: the
    adversarial training of Madry and others (2018), in the ball of one word.

    Args:
        share: of the paper's radius sqrt(d).
        steps: of ascent.
        seed: of the words and the starts.
    """

    def __init__(self, share: float = 0.5, steps: int = 3, seed: Seed = 0):
        generator(seed)
        self._share, self._steps = require_positive("share", share), require_count("steps", steps)
        self._seed = seed

    def texts(
        self,
        network: TextNetwork,
        rows: Float[Tensor, "b n d"],
        labels: Float[Tensor, " b"],
        step: int,
    ) -> Float[Tensor, "b n d"]:
        stream = generator(self._seed, "adversarial words", step)
        words = torch.randint(rows.shape[1], (len(rows), 1), generator=stream).to(rows.device)
        result = worst_words(network, rows, labels, words, self._radius(rows), self._steps, stream)
        return MovedTexts(rows, words)(result)

    def _radius(self, rows: Tensor) -> float:
        return self._share * math.sqrt(rows.shape[2])


def worst_words(
    network: TextNetwork,
    rows: Float[Tensor, "b n d"],
    labels: Float[Tensor, " b"],
    words: Tensor,
    radius: float,
    steps: int,
    stream: torch.Generator,
) -> Float[Tensor, "p d"]:
    """For each of the words (b, w) the Delta that short ascent finds to raise -label logit most; p
    = b w."""
    signs, moved = labels.repeat_interleave(words.shape[1]), MovedTexts(rows, words)

    def against(texts: Tensor) -> Tensor:
        return -signs * network(texts)

    drawn = torch.randn(words.numel(), rows.shape[2], generator=stream).to(rows)
    return ascend(
        against, moved, radius * torch.nn.functional.normalize(drawn, dim=1), radius, steps
    )


class WordDropout(Control):
    """Every word of a training text becomes a row of zeros with probability `share`; one word of
    each text is kept."""

    def __init__(self, share: float = 0.1, seed: Seed = 0):
        if not 0 < share < 1:
            raise InputError(
                f"`share` (={share!r}) must be between 0 and 1; it is the chance of a word to be "
                "blank"
            )
        generator(seed)
        self._share, self._seed = share, seed

    def texts(
        self,
        network: TextNetwork,
        rows: Float[Tensor, "b n d"],
        labels: Float[Tensor, " b"],
        step: int,
    ) -> Float[Tensor, "b n d"]:
        drawn = torch.rand(
            rows.shape[:2], generator=generator(self._seed, "word dropout", step)
        ).to(rows.device)
        keep_mask = (drawn >= self._share) | (drawn == drawn.amax(dim=1, keepdim=True))
        return rows * keep_mask.unsqueeze(2)


class SupervisedPairs(Control):
    """weight * the contrastive loss of some pairs is added to the loss of every step.

    With the relative change delta = ‖phi(B) - phi(A)‖ / ‖phi(A)‖ of a pair (A, B), as in word
    sensitivity, a pair that means the same adds delta², a flipped one max(0, margin - delta)² (the
    loss of Hadsell, Chopra and LeCun, 2006, on relative changes); the term is the mean over the
    pairs. A penalty on S moves the features' response to every word; this one tells words that
    matter from those that do not. Pairs with phi(A) = 0 are left out of a step.

    Args:
        pairs: to learn from.
        weight: of the term.
        margin: the relative change beyond which a flipped pair is told well enough.
        batch: pairs a step, drawn with replacement.
        seed: of the choice.

    Raises:
        InputError: no pairs, or a number that is not positive.
    """

    def __init__(
        self,
        pairs: TextPairs,
        weight: float = 1.0,
        *,
        margin: float = 1.0,
        batch: int = 16,
        seed: Seed = 0,
    ):
        if not len(pairs):
            raise InputError("`pairs` (=0 pairs) must hold at least one")
        generator(seed)
        self._pairs, self._seed = pairs, seed
        self._weight, self._margin = (
            require_positive("weight", weight),
            require_positive("margin", margin),
        )
        self._batch = require_count("batch", batch)
        self._step = 0

    def texts(
        self,
        network: TextNetwork,
        rows: Float[Tensor, "b n d"],
        labels: Float[Tensor, " b"],
        step: int,
    ) -> Float[Tensor, "b n d"]:
        self._step = step  # every step asks for its texts before its term
        return rows

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"]) -> Tensor | None:
        stream = generator(self._seed, "supervised pairs", self._step)
        chosen = torch.randint(len(self._pairs), (self._batch,), generator=stream)
        first, second = (part.to(rows) for part in self._pairs.rows(chosen))
        before, after = network.features(torch.cat([first, second])).chunk(2)
        change, lengths = (
            torch.linalg.vector_norm(part, dim=1) for part in (after - before, before)
        )
        defined = lengths > 0
        if not bool(defined.any()):
            return None
        relative = change[defined] / lengths[defined]
        flipped = self._pairs.flipped[chosen].to(rows.device)[defined]
        short = (self._margin - relative).clamp(min=0)
        return self._weight * torch.where(flipped, short, relative).square().mean()


class SpectralPenalty(Control):
    """weight * sum over linear layers of sigma(W)², sigma the largest singular value.

    sigma is u^T W v with the vectors of one power iteration a step, which go on from the last
    step's and are held fixed in the gradient: a lower bound of the operator norm that follows it
    (spectral norm regularisation, Yoshida and Miyato, 2017).
    """

    def __init__(self, weight: float = 0.01, seed: Seed = 0):
        generator(seed)
        self._weight, self._seed = require_positive("weight", weight), seed
        self._vectors: dict[str, Tensor] = {}

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"]) -> Tensor:
        total = rows.new_zeros(())
        for name, module in network.named_modules():
            if isinstance(module, nn.Linear):
                total = total + self._largest(name, module.weight).square()
        return self._weight * total

    def _largest(self, name: str, weight: Float[Tensor, "out in"]) -> Tensor:
        with torch.no_grad():
            right = self._vectors.get(name)
            if right is None:
                drawn = torch.randn(
                    weight.shape[1], generator=generator(self._seed, "spectral penalty", name)
                )
                right = drawn.to(weight)
            left = nn.functional.normalize(weight @ right, dim=0)
            right = nn.functional.normalize(weight.T @ left, dim=0)
            self._vectors[name] = right
        return left @ weight @ right
