"""The paper in five steps, each with an experiment that runs while it is read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from wordsens.app.parts import Box, Button, Chart, Field, Lines, Site, Text, curve, screen
from wordsens.app.request import EXAMPLES
from wordsens.app.work_line import WorkLine

NAMES = {"raf": "attention", "rf": "fully connected layer"}

LEAD = (
    "“Towards Understanding the Word Sensitivity of Attention Layers” (Bombari and Mondelli, ICML 2024), told with "
    "experiments that run on this server while you read."
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
        waits: what is said beside the button of an experiment that does not run by itself.
    """

    title: str
    paragraphs: tuple[str, ...]
    takeaway: str
    action: str
    formula: str = ""
    waits: str = ""


STEPS = (
    Step(
        "What word sensitivity is",
        (
            "To a network a sentence is a list of vectors, one a word. Push one vector, no farther than its own "
            "length, and watch the network’s output. How far can the output move, if you push the best word in the "
            "best direction? That distance, over the size of the output, is the word sensitivity S.",
            "Two simple layers with random weights stand for two kinds of networks: a fully connected layer, which "
            "mixes all words in large sums, and attention, in which every word decides which words it listens to. Move "
            "the slider: one word is pushed, for each layer in its most effective direction.",
        ),
        "The same word, pushed as far, moves attention’s output much farther than the fully connected layer’s, because "
        "the other words turn to it.",
        "Push a word",
        "S = largest ‖output of the changed sentence − output‖ / ‖output‖",
    ),
    Step(
        "Longer texts: one layer stops noticing",
        (
            "One word of five is a fifth of a sentence. One word of two hundred is almost nothing, and a fully "
            "connected layer treats it so: its sensitivity falls like 1/√n with the number n of words. The paper "
            "proves this (Theorem 1), also for several such layers (Theorem 2).",
            "Attention is different. If the vectors have enough coordinates for the length of the text, some push of a "
            "word moves the output by an amount that does not shrink with n (Theorem 3).",
        ),
        "The fully connected layer’s sensitivity falls with the length of the text as theory predicts; attention’s "
        "does not.",
        "Grow the text",
    ),
    Step(
        "Why: all words can be made to look at one",
        (
            "Each word j has a direction u in which its attention is easily won: push another word along u, and j’s "
            "attention to it grows exponentially. Different words have different directions, but a push along their "
            "sum goes along all of them a little, and in many dimensions a little is enough.",
            "So the proof builds one push: partly along that sum, partly at a right angle to it, so that the word "
            "itself becomes another. Most words then look at the pushed word, and the output of each is nearly a copy "
            "of it. Here it is built for your sentence. A search finds pushes that go farther.",
        ),
        "ReLU attention has no exponential: it cannot concentrate like this, and its sensitivity does fall with n.",
        "Build the push",
        "Δ = length · (cos θ · (sum of all u, as a unit vector) + sin θ · (a unit vector at a right angle to all u))",
    ),
    Step(
        "What it does to learning",
        (
            "A model has learned many texts, and is taught one more with the label +1. Then one word of that text "
            "changes, and with it the meaning: −1 would be right. What does the model answer?",
            "Let γ be how far the model’s answers to the two texts were apart before the lesson. If γ was small, a "
            "fully connected model cannot tell them apart afterwards either: in long texts its squared error on the "
            "changed text is at least (2 − γ)², and for γ below 1 it gives the wrong label (Theorems 4 and 5). A "
            "sensitive model can do better.",
        ),
        "A model can only learn from a word that moves its features. An error below 1 is the right label: attention "
        "gets there with a small γ, the fully connected layer does not.",
        "Learn, then change a word",
        waits="Press to run: about a quarter of a minute.",
    ),
    Step(
        "Real models, layer by layer and by length",
        (
            "Theorems need random layers. Does a trained model behave like the one or the other? Here is one on your "
            "sentence, layer by layer, then its last layer as the text grows, and how its attention turns.",
            "The search is short, so that you need not wait: the true values are these or larger.",
        ),
        "Where S falls more slowly than for the fully connected layer, one word still counts in a long text: for "
        "better, when it is a “not”, and for worse, when it is a typing error.",
        "Measure the model",
        waits="Press to run: about half a minute.",
    ),
)


class _Experiment:
    """The frame of a step: its text, its button and line of work, a place for results, and the takeaway after them."""

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
                self._waits = Text("span", step.waits, "hint")
            self.line = WorkLine(site)
            self._sentence = Text("p", "", "answer", role="status")
            self.place = Box("div")
            self._takeaway = Text("p", f"To remember: {step.takeaway}", "takeaway")
            self._takeaway.set_visibility(False)
            if not step.waits:
                ui.element("q-intersection").props("once").on("visibility", self._in_view)

    async def _in_view(self, event: Any) -> None:
        if event.args and not self.started:
            await self.start()

    async def start(self) -> None:
        """Run the experiment."""
        self.started = True
        self._waits.text = ""
        await self._run()

    async def ask(self, name: str, show: Callable[[dict[str, Any]], None] | None = None, **arguments: Any) -> Any:
        """The answer of a task, which `show` is given like its parts; None where the line says why there is none."""
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
        self._site = site
        self._strength: dict[str, Any] = {}
        self._learned: dict[str, Any] = {}
        self._points: dict[str, list[list[float]]] = {}
        with screen("/paper"):
            with Box("section"):
                Text("h1", "The paper in five steps")
                Text("p", LEAD, "lead")
                self._sentence = Field(
                    "text", "sentence", "A sentence of yours for steps 1, 3 and 5", next(iter(EXAMPLES.values())),
                    saved=True,
                )  # fmt: skip
                self._sentence.on("restored", lambda event: self._sentence.show(event.args))
            runs = (self.strength, self.lengths, self.theorem, self.learning, self.trained)
            self._steps = [
                _Experiment(site, at, step, run)
                for at, (step, run) in enumerate(zip(STEPS, runs, strict=True), start=1)
            ]
            self._build()

    def _build(self) -> None:
        """The controls and pictures of the steps."""
        first, second, third, fourth, fifth = self._steps
        with first.place:
            self._strength_lines = Lines(self._say_strength)
            self._strength_chart = Chart("How far the output moves", "share of the push", "movement of the output")
        with second.controls:
            self._most = Field(
                "range", "length-most", "Longest text, in words", 40, self._longer, least=10, most=200, step=10
            )
        with second.place:
            self._lengths_chart = Chart(
                "Word sensitivity by length", "words in the text", "word sensitivity S", log=True, x_min=4
            )
        with third.controls:
            self._word = Field("text", "theorem-word", "The word that is pushed", "not", entered=third.start)
        with third.place:
            self._theorem_lines = Lines()
        with fourth.place:
            self._gamma = Field(
                "range", "gamma", "γ: how far apart the answers were before the lesson, at most", 0.5,
                self._say_learned, least=0.25, most=1.75, step=0.25,
            )  # fmt: skip
            self._gamma.set_visibility(False)
            self._learning_chart = Chart("The least error by γ", "γ", "squared error on the changed text", y_min=0)
        with fifth.controls:
            models = self._site.settings.models
            self._model = Field("select", "real-model", "Model", models[0], options=[[name, name] for name in models])
        with fifth.place:
            self._layers_chart = Chart("S by layer", "layer", "word sensitivity S", y_min=0)
            self._model_lengths_chart = Chart("S by length", "words in the text", "word sensitivity S", log=True)
            self._model_lines = Lines()

    async def visit(self) -> None:
        """Nothing: steps run as they come into view."""

    def _text(self, step: int) -> str | None:
        """The visitor's sentence; None where it is too short or too long, which the step says."""
        text = str(self._sentence.value).strip()
        if 2 <= len(text.split()) <= self._site.settings.max_words:
            return text
        self._steps[step].line.drop()
        said = "Your sentence above must have two words or more; the steps read its first 20."
        self._steps[step].line.say(said, problem=True)
        return None

    async def strength(self) -> None:
        """Step 1."""
        if (text := self._text(0)) is None or (answer := await self._steps[0].ask("strength", text=text)) is None:
            return
        self._strength = answer
        last = len(answer["values"]["raf"]) - 1
        curves = [
            curve(NAMES[name], name, [(frame / last, value) for frame, value in enumerate(values)])
            for name, values in answer["values"].items()
        ]
        self._strength_chart.draw(curves)
        self._strength_lines.show_push(answer["lines"], f"Push of “{answer['word']}”, in percent of the strongest")

    def _say_strength(self, frame: int) -> None:
        answer = self._strength
        attention, dense = (answer["values"][name][frame] for name in ("raf", "rf"))
        share = frame / (len(answer["values"]["raf"]) - 1)
        self._steps[0].say(
            f"“{answer['word']}”, one of {answer['words']} words, goes {share:.0%} of the way: attention’s output "
            f"moves by {attention:.2f} times its size, the fully connected layer’s by {dense:.2f}."
        )

    async def _longer(self) -> None:
        if self._steps[1].started:
            await self.lengths()

    async def lengths(self) -> None:
        """Step 2: the points that are known are not measured again."""
        most = int(self._most.value)

        def show(part: dict[str, Any]) -> None:
            if "points" in part:
                self._points = part["points"]
                self._lengths_chart.draw(_length_curves(self._points, most))

        answer = await self._steps[1].ask("lengths", show, most=most, known=self._points)
        if answer is not None:
            within = [point for point in answer["points"]["rf"] if point[0] <= most]
            (n, first, _), (m, last, _) = within[0], within[-1]
            self._steps[1].say(
                f"From {n} to {m} words the fully connected layer’s sensitivity falls from {first:.2f} to {last:.2f}. "
                "Measured: the farthest movement among 4 words of a random text, in 192 dimensions. Dashed: what "
                "theory predicts, at the lengths at which it was compared with measurements."
            )

    async def theorem(self) -> None:
        """Step 3."""
        if (text := self._text(2)) is None:
            return
        answer = await self._steps[2].ask("theorem", text=text, word=str(self._word.value).strip().lower())
        if answer is not None:
            self._steps[2].say(
                f"Built, not searched: the other words now give “{answer['word']}” {answer['mass']:.0%} of their "
                f"attention on average, and the output moves by {answer['value']:.2f} times its size (pushed the "
                f"opposite way: {answer['opposite']:.2f}). The proof guarantees {answer['guarantee']:.2f} of one."
            )
            self._theorem_lines.show_push(answer["lines"], f"Push of “{answer['word']}”, of the one that is built")

    async def learning(self) -> None:
        """Step 4."""

        def show(part: dict[str, Any]) -> None:
            if "errors" in part:
                self._learned = part
                curves = [
                    curve(NAMES[name], name, list(zip(part["gammas"], errors, strict=True)))
                    for name, errors in part["errors"].items()
                ]
                bound = [[place / 20, (2 - place / 20) ** 2] for place in range(2, 36)]
                self._learning_chart.draw([*curves, curve("(2 − γ)², of the theorems", "rf", bound, dashed=True)])

        if await self._steps[3].ask("learning", show, seed=0) is not None:
            self._gamma.set_visibility(True)
            self._say_learned()

    def _say_learned(self) -> None:
        gamma = float(self._gamma.value)
        place = list(self._learned["gammas"]).index(gamma)
        layer, attention = (self._learned["errors"][name][place] for name in ("rf", "raf"))
        self._steps[3].say(
            f"With γ at most {gamma:g} the theorems’ (2 − γ)² is {(2 - gamma) ** 2:.2f}. The least error that was "
            f"found is {layer:.2f} on the fully connected layer and {attention:.2f} on attention; below 1 the label is "
            "right."
        )

    async def trained(self) -> None:
        """Step 5."""
        model, text = self._model.value, self._text(4)
        if text is None or model not in self._site.settings.models:
            return

        def show(part: dict[str, Any]) -> None:
            if points := part.get("layers"):
                self._layers_chart.draw([curve(f"{model}, by layer", "model", points)])
            if points := part.get("lengths"):
                n, value = points[0]
                fall = curve("a fall like 1/√n", "rf", [[m, value * (n / m) ** 0.5] for m, _ in points], dashed=True)
                self._model_lengths_chart.draw([curve(f"{model}, by length", "model", points), fall])

        answer = await self._steps[4].ask("trained", show, model=model, text=text)
        if answer is not None:
            layer, value = max(answer["layers"], key=lambda point: point[1])
            self._steps[4].say(
                f"Of three words of your sentence, one moves layer {layer}’s output by {value:.2f} times its size, "
                f"more than any other layer’s. Below, attention in the last layer as “{answer['word']}” is pushed."
            )
            self._model_lines.show_push(answer["lines"], f"Push of “{answer['word']}”, of the strongest found")


def _length_curves(points: dict[str, list[list[float]]], most: int) -> list[dict[str, Any]]:
    """Measured and predicted S against n, of each map, up to `most` words."""
    curves = []
    for name, measured in points.items():
        within = [point for point in measured if point[0] <= most]
        curves.append(curve(NAMES[name], name, [point[:2] for point in within]))
        if predicted := [[n, theory] for n, _, theory in within if theory is not None]:
            curves.append(curve(f"{NAMES[name]}, predicted", name, predicted, dashed=True))
    return curves
