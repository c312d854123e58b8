"""The first screen: may the answer to one text be given for another? Then the model on pairs of
known meaning."""

import math
from typing import Any

from wordsens.app.attention import AttentionFold
from wordsens.app.model_pairs import ModelPairs
from wordsens.app.parts import Box, Button, Field, Markup, Site, Text, screen, set_address, shipped
from wordsens.app.request import PAIRS
from wordsens.app.work_line import WorkLine
from wordsens.evaluation.guard.judge import ADVICE

LEAD = (
    "A cache before a language model may answer a question with the stored answer to another one "
    "where the cosine of "
    "the two reaches a threshold: a hit. At a miss the language model is asked. The guard reads "
    "the words of both, by "
    "rules, and says same, different or unsure."
)

MISSED = "nothing: a cache misses here, and the language model is asked"
THRESHOLD = "A threshold is a cosine from 0 to 1, such as 0.9."
NEEDLESS = (
    "a cache misses here without need; wordsens calibrate finds how low your threshold may be"
)


class TwoTexts:
    """The screen of one visitor, with the settings of the link."""

    def __init__(self, site: Site, query: dict[str, str]):
        self._site, self._result = site, shipped()["two_texts"]
        self._texts: dict[str, Field] = {}
        self._drawn = {name: self._result[name] for name in ("model", "first", "second")}
        """The settings of the result."""
        with screen("/"), Box("div", "stage"):
            with Box("section", "colours", aria_label="Answer") as self._answer:
                self._stale = Text("p", "", "stale-note", role="status")
                self._headline = Text("h1")
                Text("p", LEAD, "lead")
                self._sentences = Text("p", "", "answer", role="status")
                self._advice = Text("p", "", "takeaway")
                self._words = Markup()
                with Box("details", "more") as self._more:
                    Text(
                        "summary",
                        "All numbers: each word left out, exchanged, moved as a vector; pairs of "
                        "words",
                    )
                    self._numbers = Markup()
                self._attention = AttentionFold(site, lambda: self._drawn)
            with Box("section", "form", aria_label="Your texts"):
                self._form(query)
            with Box("section", "details", aria_label="The model"):
                self._pairs = ModelPairs(
                    site, self._model, float(self._threshold.value), self._slid
                )
        if not self._pairs.allows(float(self._threshold.value)):  # of a link
            self._slid()
        self._draw(self._result)
        self._mark()

    def _form(self, query: dict[str, str]) -> None:
        for name, label in (("first", "A text"), ("second", "Another text")):
            text = query.get(name, self._drawn[name])
            self._texts[name] = Field(
                "textarea", name, label, text, self._mark, self.run, rows=2, saved=True
            )
        models = self._site.settings.models
        model = query["model"] if query.get("model") in models else models[0]
        self._model = Field(
            "select", "model", "Model", model, self._mark, options=[[name, name] for name in models]
        )
        threshold = number_of(query.get("threshold", ""), shipped()["check"]["threshold"])
        self._threshold = Field(
            "number",
            "threshold",
            "Your threshold",
            f"{threshold:.2f}",
            self._type,
            self.run,
            step=0.01,
        )
        with Box("div", "row-of"):
            Button("Compare", self.run, main=True, id="run")
        self._line = WorkLine(self._site)
        with Box("details", "more"):
            Text("summary", "Examples")
            with Box("div", "row-of"):
                for name, pair in PAIRS.items():
                    Button(name, lambda pair=pair: self._take(*pair))

    async def visit(self) -> None:
        """Compare what the link or the server's own model asks for, where that is not there yet."""
        if self._settings() != self._drawn:
            await self.run()

    def _take(self, first: str, second: str) -> Any:
        self._texts["first"].show(first)
        self._texts["second"].show(second)
        return self.run()

    def _settings(self) -> dict[str, str]:
        """The arguments of the task."""
        fields = {"model": self._model, **self._texts}
        return {name: str(field.value).strip() for name, field in fields.items()}

    def _mark(self) -> None:
        """Grey a result of other settings."""
        stale = self._settings() != self._drawn
        self._answer.classes(add="stale") if stale else self._answer.classes(remove="stale")
        self._stale.text = (
            "The texts or the model have changed. Press Compare, or Enter in a text."
            if stale
            else ""
        )

    def _type(self) -> None:
        """Take the threshold that was typed; half a number changes nothing."""
        typed = number_of(self._threshold.value, self._pairs.threshold)
        self._line.say("" if self._pairs.allows(typed) else THRESHOLD, problem=True)
        if self._pairs.allows(typed):
            self._pairs.set_threshold(typed)
            self._say()

    def _slid(self) -> None:
        """Take the threshold of the slider."""
        self._threshold.show(f"{self._pairs.threshold:g}")
        self._say()

    async def run(self) -> None:
        """Compare the texts, and check the model where its pairs are those of another."""
        settings, most = self._settings(), self._site.settings.max_words
        if not all(1 <= len(settings[name].split()) <= most for name in self._texts):
            self._line.drop()
            self._line.say(f"Give two texts, of one to {most:,} words each.", problem=True)
            self._mark()
            return
        if self._stale.text:
            self._stale.text = "The new answer is on its way."
        set_address("/", {"model": settings["model"], "threshold": f"{self._pairs.threshold:g}"})

        def show(part: dict[str, Any]) -> None:
            if "answer" in part:
                self._drawn = settings
                self._draw(part["answer"])

        answer = await self._line.run("two_texts", settings, show)
        if answer is not None:
            self._draw(answer)
            if self._pairs.model != settings["model"]:
                await self._pairs.run()
                self._draw(answer)
        self._mark()

    def _draw(self, result: dict[str, Any]) -> None:
        self._result = result
        self._attention.clear()
        self._words.set_content(result["words"])
        self._numbers.set_content(result["numbers"])
        self._more.set_visibility(bool(result["numbers"]))
        self._pairs.mark_pair(
            result["value"] if self._pairs.model == self._drawn["model"] else None
        )
        self._say()

    def _say(self) -> None:
        """The answer at the threshold that is set."""
        result, threshold = self._result, self._pairs.threshold
        score, hit = result["score"], result["value"] >= threshold
        cut = f" {result['cut']}" if result["cut"] else ""
        self._headline.text = (
            f"{score.capitalize()} {result['value']:.3f}: a "
            f"{'hit' if hit else 'miss'} at your threshold {threshold:g}.{cut}"
        )
        guard = f"The guard says {result['verdict']} ({result['reason']})."
        self._sentences.text = f"{guard} {result['apart']}".strip()
        advice = (
            ADVICE[result["verdict"]]
            if hit
            else NEEDLESS
            if result["verdict"] == "same"
            else MISSED
        )
        self._advice.text = f"What to do: {advice}."


def number_of(text: str, otherwise: float) -> float:
    """The number of a control or a link; `otherwise` where it is none."""
    try:
        value = float(text)
    except ValueError:
        return otherwise
    return value if math.isfinite(value) else otherwise
