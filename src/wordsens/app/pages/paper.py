"""The paper in five steps, each with an experiment that runs while it is read."""

from collections.abc import Awaitable, Callable
from typing import Any

from wordsens.app.pages.story import STEPS, Step
from wordsens.app.view.parts import Box, Button, Control, Figure, Table, Text
from wordsens.app.view.shell import Site, screen, someone_looks
from wordsens.app.view.work_line import WorkLine, kind_message
from wordsens.errors import InputError

SENTENCE = "The second key does not open the door to the archive."


class PaperScreen:
    """The screen of one visitor."""

    def __init__(self, site: Site):
        self._site = site
        self._strength: dict[str, Any] = {}
        self._learned: dict[str, Any] = {}
        self._points: dict[str, Any] = {}
        with screen("/paper"):
            with Box("section"):
                Text("h1", "The paper in five steps")
                Text(
                    "p", "“Towards Understanding the Word Sensitivity of Attention Layers” (Bombari and Mondelli, "
                    "ICML 2024), "
                    "told with experiments that run here, on this server, while you read.", "lead",
                )  # fmt: skip
                self._sentence = Control("text", "sentence", "A sentence of yours for steps 1, 3 and 5", SENTENCE)
            builders = (self._first, self._second, self._third, self._fourth, self._fifth)
            for at, (step, build) in enumerate(zip(STEPS, builders, strict=True), start=1):
                self._step(at, step, build)

    def _step(self, at: int, step: Step, build: Callable[[], Callable[..., Awaitable[None]]]) -> None:
        with Box("section", "step", id=f"step-{at}"):
            with Box("h2"):
                Text("span", str(at), "count")
                Text("span", step.title)
            for paragraph in step.said:
                Text("p", paragraph, "say")
            if step.formula:
                Text("p", step.formula, "formula", tabindex="0")
            build()
            Text("p", f"To remember: {step.takeaway}", "takeaway")

    def _line_of(self, name: str, action: str, run: Callable[..., Any]) -> WorkLine:
        with Box("div", "row-of"):
            Button(action, run, main=True, id=name)
        return WorkLine(self._site)

    def _text(self) -> str:
        text = str(self._sentence.value).strip()
        if len(text.split()) < 2 or len(text.split()) > self._site.settings.limits.words:
            raise InputError("Your sentence above must have two words or more; the steps read its first 20.")
        return text

    async def _run(self, line: WorkLine, name: str, arguments: Callable[[], dict[str, Any]], told: Any = None) -> Any:
        try:
            return await line.run(name, arguments(), told)
        except InputError as error:
            line.say(kind_message(str(error)), problem=True)
            return None

    def _first(self) -> Any:
        line = self._line_of("strength", "Move a word", lambda: self.strength())
        self._share = Control(
            "range",
            "strength-share",
            "How far the word goes, as a share of its length",
            1.0,
            self._tell_strength,
            least=0,
            most=1,
            step=0.05,
        )
        self._strength_said = Text("p", "", "answer", role="status")
        self._strength_place, self._strength_line = Box("div"), line

    async def strength(self) -> None:
        """Step 1."""
        found = await self._run(self._strength_line, "strength", lambda: {"text": self._text()})
        if found is not None:
            self._strength = found
            _draw(self._strength_place, found["figure"])
            self._tell_strength(self._share.value)

    def _tell_strength(self, share: Any) -> None:
        if self._strength:
            at = round(float(share) * 20)
            values = {name: own[at] for name, own in self._strength["values"].items()}
            self._strength_said.text = (
                f"“{self._strength['word']}”, one of {self._strength['words']} words, goes {float(share):.0%} of the "
                "way: "
                f"attention’s output moves by {values['raf']:.2f} times its size, the fully connected layer’s by "
                f"{values['rf']:.2f}."
            )

    def _second(self) -> Any:
        self._most = Control("range", "length-most", "Longest text, in words", 40, least=10, most=200, step=10)
        self._length_line = self._line_of("lengths", "Grow the text", lambda: self.lengths())
        self._most.on("value", lambda _: self.lengths() if self._points else None, throttle=0.3)
        self._length_place = Box("div")

    async def lengths(self) -> None:
        """Step 2: the points that are known are not measured again."""

        def show(part: dict[str, Any]) -> None:
            if "figure" in part:
                self._points = part["points"]
                _draw(self._length_place, part["figure"])

        arguments = {"most": int(self._most.value), "known": self._points}
        if (found := await self._run(self._length_line, "lengths", lambda: arguments, show)) is not None:
            show(found)

    def _third(self) -> Any:
        self._word = Control("text", "theorem-word", "The word that moves", "not")
        self._theorem_line = self._line_of("theorem", "Build the change", lambda: self.theorem())
        self._theorem_place = Box("div")

    async def theorem(self) -> None:
        """Step 3."""
        word = str(self._word.value).strip().lower()
        found = await self._run(self._theorem_line, "theorem", lambda: {"text": self._text(), "word": word})
        if found is None:
            return
        self._theorem_place.clear()
        with self._theorem_place:
            Text(
                "p", f"Built, not searched: the other words now give “{found['word']}” {found['mass']:.0%} of their "
                f"attention on average, and the output moves by {found['value']:.2f} times its size (pushed the "
                f"opposite way: {found['opposite']:.2f}). The proof guarantees {found['guarantee']:.2f} of one.",
                "answer",
            )  # fmt: skip
            Figure(found["figure"])
            with Box("details", "more"):
                Text("summary", "Each word’s attention, before and after")
                Table("Attention to the word", ("word", "before", "after"), found["rows"])

    def _fourth(self) -> Any:
        self._gamma = Control(
            "range", "gamma", "γ: how far apart its answers were before the lesson, at most", 0.5, self._tell_learned,
            least=0.25, most=1.75, step=0.25,
        )  # fmt: skip
        self._learning_line = self._line_of("learning", "Learn, then change a word", lambda: self.learning())
        self._learned_said = Text("p", "", "answer", role="status")
        self._learning_place = Box("div")

    async def learning(self) -> None:
        """Step 4."""

        def show(part: dict[str, Any]) -> None:
            if "figure" in part:
                self._learned = part
                _draw(self._learning_place, part["figure"])
                self._tell_learned(self._gamma.value)

        if (found := await self._run(self._learning_line, "learning", lambda: {"seed": 0}, show)) is not None:
            show(found)

    def _tell_learned(self, gamma: Any) -> None:
        if len(self._learned.get("errors", ())) < 2:
            return
        gamma = float(gamma)
        at = self._learned["gammas"].index(gamma)
        layer, attention = (self._learned["errors"][name][at] for name in ("rf", "raf"))
        self._learned_said.text = (
            f"γ at most {gamma:g}: the theorem’s (2 − γ)² is {(2 - gamma) ** 2:.2f}. The least error found on the "
            "fully connected "
            f"layer is {layer:.2f}, on attention {attention:.2f}. An error below 1 is the right label."
        )

    def _fifth(self) -> Any:
        models = self._site.settings.models
        self._model = Control("select", "real-model", "Model", models[0], options=[[one, one] for one in models])
        self._real_line = self._line_of("real", "Measure the model", lambda: self.real())
        self._real_places = Box("div"), Box("div")

    async def real(self) -> None:
        """Step 5."""

        def show(part: dict[str, Any]) -> None:
            for place, name in zip(self._real_places, ("layers", "lengths"), strict=True):
                if part.get(name):
                    _draw(place, part[name])

        if (model := self._model.value) in self._site.settings.models:
            arguments = {"model": model}
            found = await self._run(self._real_line, "real", lambda: {**arguments, "text": self._text()}, show)
            if found is not None:
                show(found)


def _draw(place: Box, figure: dict[str, Any]) -> None:
    """The figure in its place: what is there is drawn again, so that a reader's focus does not jump."""
    if (children := list(place.default_slot.children)) and isinstance(children[0], Figure):
        children[0].show(figure)
    else:
        with place:
            Figure(figure)


async def paper(site: Site) -> None:
    """Build the screen, and run the first step."""
    page = PaperScreen(site)
    if await someone_looks():
        await page.strength()
