"""The paper in three steps, each with an experiment that runs while it is read."""

from collections.abc import Callable
from typing import Any

from nicegui import ui

from wordsens.app.parts import Field, LineChart, Lines, Tag, button, curve, screen
from wordsens.app.pool import Pool
from wordsens.app.request import EXAMPLES
from wordsens.app.work_line import WorkLine

LEAD = (
    "“Towards Understanding the Word Sensitivity of Attention Layers” "
    "(Bombari and Mondelli, ICML 2024), with experiments that run while you read. "
    "To a network, a sentence is a list of vectors, one per word. "
    "Move one of them by up to its own length: the largest resulting change of the output, "
    "divided by the output’s size, is the word sensitivity S. "
    "The screen “Why” shows it for your text."
)

# Each step's title, its paragraphs, the action on the button of its experiment, and what to
# remember after it.
STEPS = (
    (
        "Longer texts: one layer stops noticing",
        (
            "One word of five is a fifth of a sentence. "
            "One word of two hundred is almost nothing, "
            "and a fully connected layer treats it so: "
            "its sensitivity falls like 1/√n with the number n of words. "
            "The paper proves this (Theorem 1), also for several such layers (Theorem 2).",
            "Attention is different. "
            "If the vectors have enough coordinates for the length of the text, "
            "some push of a word moves the output by an amount "
            "that does not shrink with n (Theorem 3).",
        ),
        "Grow the text",
        "The fully connected layer’s sensitivity falls with the length of the text. "
        "Attention’s does not, as long as the vectors have enough coordinates.",
    ),
    (
        "Why: all words can be made to look at one",
        (
            "Each word j has a direction u in which its attention is easily won: "
            "push another word along u, and j’s attention to it grows exponentially. "
            "A push along the sum of all words’ directions goes along each of them a little, "
            "and in many dimensions a little is enough.",
            "So the proof builds one push: partly along that sum, "
            "partly at a right angle to it, so that the word itself becomes a different one. "
            "Most words then look at the pushed word, "
            "and the output of each is nearly a copy of it. "
            "Here it is built for your sentence. "
            "A search finds pushes that move the output farther.",
        ),
        "Build the push",
        "ReLU attention has no exponential: it cannot concentrate like this, "
        "and its sensitivity does fall with n.",
    ),
    (
        "What it does to learning",
        (
            "A model has learned many texts, and is taught one more with the label +1. "
            "Then one word of that text changes, and with it the meaning: −1 would be right. "
            "What does the model answer?",
            "Let γ be the difference between the model’s answers to the two texts "
            "before the update. "
            "If γ was small, a fully connected model cannot tell them apart afterwards: "
            "in long texts its squared error on the changed text is at least (2 − γ)², "
            "and for γ below 1 it gives the wrong label (Theorems 4 and 5). "
            "A sensitive model can do better.",
        ),
        "Learn, then change a word",
        "A model can only learn from a word that moves its features. "
        "An error below 1 means the right label: "
        "attention reaches it with a small γ, the fully connected layer does not.",
    ),
)

# The push of step 2.
FORMULA = (
    "Δ = length · (cos θ · (sum of all u, as a unit vector) "
    "+ sin θ · (a unit vector at a right angle to all u))"
)


class Experiment:
    """A step: its text, its button and line of work, its result, and what to remember after it.

    Args:
        pool: the workers.
        number: of the step.
        task: of the experiment.
        arguments: gives the arguments of the task as it starts.
        chart: arguments of the chart; None for an experiment without curves.
    """

    def __init__(
        self,
        pool: Pool,
        number: int,
        task: str,
        arguments: Callable[[], dict[str, Any]] = dict,
        chart: tuple[str, dict[str, Any], dict[str, Any]] | None = None,
    ):
        self._task, self._arguments, self._started = task, arguments, False
        title, paragraphs, action, takeaway = STEPS[number - 1]
        with Tag("section", classes="step", id=f"step-{number}"):
            with Tag("h2"):
                Tag("span", str(number), "count")
                Tag("span", title)
            for paragraph in paragraphs:
                Tag("p", paragraph, "say")
            self.controls = Tag("div")
            with Tag("div", classes="row-of"):
                button(action, self.start, main=True, id=f"run-{number}")
            self._line = WorkLine(pool)
            self._sentence = Tag("p", "", "answer", role="status")
            self._chart = LineChart(*chart) if chart else None
            self._lines = Lines()
            self._takeaway = Tag("p", f"To remember: {takeaway}", "takeaway")
            self._takeaway.set_visibility(False)
            ui.element("q-intersection").props("once").on("visibility", self._in_view)

    async def _in_view(self, event: Any) -> None:
        if event.args and not self._started:
            await self.start()

    async def start(self) -> None:
        """Run the experiment."""
        self._started = True
        if await self._line.run(self._task, self._arguments(), self._show) is not None:
            self._takeaway.set_visibility(True)

    def _show(self, part: dict[str, Any]) -> None:
        """Show a part of the result."""
        if self._chart is not None and "curves" in part:
            self._chart.draw([curve(**each) for each in part["curves"]])
        if "lines" in part:
            self._lines.show(part["lines"])
        self._sentence.text = part.get("sentence", self._sentence.text)


class PaperScreen:
    """The screen of one visitor."""

    def __init__(self, pool: Pool, query: dict[str, str]):
        with screen("/paper"):
            with Tag("section"):
                Tag("h1", "The paper in three steps")
                Tag("p", LEAD, "lead")
                example = next(iter(EXAMPLES.values()))
                label = "A sentence for step 2; its first 20 words are read"
                text = Field("text", "sentence", label, example, saved=True)
            words = {"name": "words in the text", "type": "log", "logBase": 2, "min": 4}
            sensitivity = {"name": "word sensitivity S", "type": "log", "logBase": 2}
            error = {"name": "squared error on the changed text", "min": 0}
            by_length = "Word sensitivity by length", words, sensitivity
            Experiment(pool, 1, "lengths", chart=by_length)
            proof = Experiment(pool, 2, "theorem", lambda: {"text": text.value, "word": word.value})
            with proof.controls:
                Tag("p", FORMULA, "formula", tabindex="0")
                label = "The word that is pushed"
                word = Field("text", "theorem-word", label, "not", entered=proof.start)
            Experiment(pool, 3, "learning", chart=("The least error by γ", {"name": "γ"}, error))

    async def visit(self) -> None:
        """Nothing: steps run as they come into view."""
