"""The paper in three steps, each with an experiment that runs while it is read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from wordsens.app.parts import Box, Button, Field, LineChart, Lines, Site, Text, curve, screen
from wordsens.app.request import EXAMPLES
from wordsens.app.work_line import WorkLine

NAMES = {"raf": "attention", "rf": "fully connected layer"}

GAMMA = 0.5
"""Of the sentence of step 3; the chart has the others."""

LEAD = (
    "“Towards Understanding the Word Sensitivity of Attention Layers” (Bombari and Mondelli, ICML "
    "2024), told with "
    "experiments that run on this server while you read. To a network a sentence is a list of "
    "vectors, one a word. "
    "Push one of them, no farther than its own length: the farthest that the output moves, over "
    "its size, is the word "
    "sensitivity S. “Why” shows it for your text."
)


@dataclass(frozen=True)
class Step:
    """A step of the story.

    Attributes:
        title: its heading.
        paragraphs: before the experiment.
        takeaway: what to remember, after it.
        action: on the button of the experiment.
        formula: on a line of its own; "" for none.
    """

    title: str
    paragraphs: tuple[str, ...]
    takeaway: str
    action: str
    formula: str = ""


STEPS = (
    Step(
        "Longer texts: one layer stops noticing",
        (
            "One word of five is a fifth of a sentence. One word of two hundred is almost nothing, "
            "and a fully "
            "connected layer treats it so: its sensitivity falls like 1/√n with the number n of "
            "words. The paper "
            "proves this (Theorem 1), also for several such layers (Theorem 2).",
            "Attention is different. If the vectors have enough coordinates for the length of the "
            "text, some push of a "
            "word moves the output by an amount that does not shrink with n (Theorem 3).",
        ),
        "The fully connected layer’s sensitivity falls with the length of the text as theory "
        "predicts; attention’s "
        "does not while the vectors have enough coordinates.",
        "Grow the text",
    ),
    Step(
        "Why: all words can be made to look at one",
        (
            "Each word j has a direction u in which its attention is easily won: push another word "
            "along u, and j’s "
            "attention to it grows exponentially. Different words have different directions, but a "
            "push along their "
            "sum goes along all of them a little, and in many dimensions a little is enough.",
            "So the proof builds one push: partly along that sum, partly at a right angle to it, "
            "so that the word "
            "itself becomes another. Most words then look at the pushed word, and the output of "
            "each is nearly a copy "
            "of it. Here it is built for your sentence. A search finds pushes that go farther.",
        ),
        "ReLU attention has no exponential: it cannot concentrate like this, and its sensitivity "
        "does fall with n.",
        "Build the push",
        "Δ = length · (cos θ · (sum of all u, as a unit vector) + sin θ · (a unit vector at a "
        "right angle to all u))",
    ),
    Step(
        "What it does to learning",
        (
            "A model has learned many texts, and is taught one more with the label +1. Then one "
            "word of that text "
            "changes, and with it the meaning: −1 would be right. What does the model answer?",
            "Let γ be how far the model’s answers to the two texts were apart before the lesson. "
            "If γ was small, a "
            "fully connected model cannot tell them apart afterwards either: in long texts its "
            "squared error on the "
            "changed text is at least (2 − γ)², and for γ below 1 it gives the wrong label "
            "(Theorems 4 and 5). A "
            "sensitive model can do better.",
        ),
        "A model can only learn from a word that moves its features. An error below 1 is the right "
        "label: attention "
        "gets there with a small γ, the fully connected layer does not.",
        "Learn, then change a word",
    ),
)


class _Experiment:
    """The frame of a step: its text, its button and line of work, a place for results, and the
    takeaway after them."""

    def __init__(self, site: Site, at: int, step: Step, run: Callable[[], Awaitable[None]]):
        self.started = False
        self._run = run
        with Box("section", "step", id=f"step-{at}"):
            with Box("h2"):
                Text("span", str(at), "count")
                Text("span", step.title)
            for paragraph in step.paragraphs:
                Text("p", paragraph, "say")
            if step.formula:
                Text("p", step.formula, "formula", tabindex="0")
            self.controls = Box("div", "step-controls")
            with Box("div", "row-of"):
                Button(step.action, self.start, main=True, id=f"run-{at}")
            self.line = WorkLine(site)
            self._sentence = Text("p", "", "answer", role="status")
            self.place = Box("div")
            self._takeaway = Text("p", f"To remember: {step.takeaway}", "takeaway")
            self._takeaway.set_visibility(False)
            ui.element("q-intersection").props("once").on("visibility", self._in_view)

    async def _in_view(self, event: Any) -> None:
        if event.args and not self.started:
            await self.start()

    async def start(self) -> None:
        """Run the experiment."""
        self.started = True
        await self._run()

    async def ask(
        self, name: str, show: Callable[[dict[str, Any]], None] | None = None, **arguments: Any
    ) -> Any:
        """The answer of a task, which `show` is given like its parts; None where the line says why
        there is none."""
        answer = await self.line.run(name, arguments, show)
        if answer is not None:
            self._takeaway.set_visibility(True)
            if show is not None:
                show(answer)
        return answer

    def say(self, sentence: str) -> None:
        """The result in a sentence."""
        self._sentence.text = sentence


class PaperScreen:
    """The screen of one visitor."""

    def __init__(self, site: Site, query: dict[str, str]):
        with screen("/paper"):
            with Box("section"):
                Text("h1", "The paper in three steps")
                Text("p", LEAD, "lead")
                example, label = (
                    next(iter(EXAMPLES.values())),
                    "A sentence for step 2; 20 words of it are read",
                )
                self._sentence = Field("text", "sentence", label, example, saved=True)
            runs = (self.lengths, self.theorem, self.learning)
            self._steps = [
                _Experiment(site, at, step, run)
                for at, (step, run) in enumerate(zip(STEPS, runs, strict=True), start=1)
            ]
            self._build()

    def _build(self) -> None:
        """The controls and pictures of the steps."""
        longer, proof, learned = self._steps
        with longer.place:
            self._lengths_chart = LineChart(
                "Word sensitivity by length",
                "words in the text",
                "word sensitivity S",
                log=True,
                x_min=4,
            )
        with proof.controls:
            self._word = Field(
                "text", "theorem-word", "The word that is pushed", "not", entered=proof.start
            )
        with proof.place:
            self._theorem_lines = Lines()
        with learned.place:
            self._learning_chart = LineChart(
                "The least error by γ", "γ", "squared error on the changed text", y_min=0
            )

    async def visit(self) -> None:
        """Nothing: steps run as they come into view."""

    async def lengths(self) -> None:
        """Step 1."""

        def show(part: dict[str, Any]) -> None:
            curves = []
            for name, points in part.get("points", {}).items():
                curves.append(curve(NAMES[name], name, [point[:2] for point in points]))
                if predicted := [[n, theory] for n, _, theory in points if theory is not None]:
                    curves.append(curve(f"{NAMES[name]}, predicted", name, predicted, dashed=True))
            self._lengths_chart.draw(curves)

        answer = await self._steps[0].ask("lengths", show)
        if answer is not None:
            (n, first, _), *_, (m, last, _) = answer["points"]["rf"]
            self._steps[0].say(
                f"From {n} to {m} words the fully connected layer’s sensitivity falls from "
                f"{first:.2f} to {last:.2f}. "
                "Measured: the farthest movement among 4 words of a random text, in 192 "
                "dimensions. Dashed: what "
                "theory predicts, at the lengths at which it was compared with measurements."
            )

    async def theorem(self) -> None:
        """Step 2."""
        text, word = str(self._sentence.value), str(self._word.value)
        answer = await self._steps[1].ask("theorem", text=text, word=word.strip().lower())
        if answer is not None:
            self._steps[1].say(
                f"Built, not searched: the other words now give “{answer['word']}” "
                f"{answer['mass']:.0%} of their "
                f"attention on average, and the output moves by {answer['value']:.2f} times its "
                "size (pushed the "
                f"opposite way: {answer['opposite']:.2f}). The proof guarantees "
                f"{answer['guarantee']:.2f} of one."
            )
            self._theorem_lines.show_push(
                answer["lines"], f"Push of “{answer['word']}”, of the one that is built"
            )

    async def learning(self) -> None:
        """Step 3."""

        def show(part: dict[str, Any]) -> None:
            if "errors" in part:
                curves = [
                    curve(NAMES[name], name, list(zip(part["gammas"], errors, strict=True)))
                    for name, errors in part["errors"].items()
                ]
                bound = [[place / 20, (2 - place / 20) ** 2] for place in range(2, 36)]
                self._learning_chart.draw(
                    [*curves, curve("(2 − γ)², of the theorems", "rf", bound, dashed=True)]
                )

        answer = await self._steps[2].ask("learning", show, seed=0)
        if answer is not None:
            place = list(answer["gammas"]).index(GAMMA)
            layer, attention = (answer["errors"][name][place] for name in ("rf", "raf"))
            self._steps[2].say(
                f"With γ at most {GAMMA:g} the theorems’ (2 − γ)² is {(2 - GAMMA) ** 2:.2f}. The "
                "least error that was "
                f"found is {layer:.2f} on the fully connected layer and {attention:.2f} on "
                "attention; below 1 the "
                "label is right."
            )
