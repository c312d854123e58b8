"""The first screen: may the answer to one text be given for another? Then the model on pairs of
known meaning."""

from typing import Any

from wordsens.app.attention import AttentionFold
from wordsens.app.model_pairs import ModelPairs
from wordsens.app.parts import (
    Field,
    Fold,
    Stale,
    Tag,
    button,
    markup,
    screen,
    set_address,
    shipped,
)
from wordsens.app.pool import Pool
from wordsens.app.request import PAIRS
from wordsens.app.work_line import WorkLine
from wordsens.errors import InputError
from wordsens.evaluation.guard.judge import ADVICE

WHAT = "wordsens measures how much one word can change what a model sees."

LEAD = (
    "A semantic cache reuses the stored answer of an earlier question "
    "when the embeddings of the two questions are similar enough: a hit. "
    "Otherwise it is a miss, and the language model is called. "
    "The guard reads the words of both texts by rules and says same, different or unsure."
)

CHANGED = "The texts or the model have changed. Press Compare, or press Enter in a text field."
THRESHOLD = "A threshold is a number; for cosines a number from −1 to 1, such as 0.9."

GUARDED = "; to turn it into a miss, run wordsens guard on the hits at your threshold"
MISSED = "Nothing to do: the cache misses, so the language model is called."
NEEDLESS = (
    "What to do: this miss is not needed. wordsens calibrate finds how low your threshold may be."
)


class TwoTexts:
    """The screen of one visitor, with the settings of the link."""

    def __init__(self, pool: Pool, query: dict[str, str]):
        self._pool, self._comparison = pool, shipped()["two_texts"]
        # The settings of the comparison that is shown, which are the arguments of the task.
        self._drawn = {name: self._comparison[name] for name in ("model", "first", "second")}
        with screen("/"):
            Tag("p", WHAT, "what")
            with Tag("nav", classes="row-of", aria_label="Start"):
                Tag("a", "My two texts", "door", href="#first")
                Tag("a", "Why attention notices a word", "door", href="/why")
            with Tag("div", classes="stage"):
                with Tag("section", classes="colours", aria_label="Answer") as answer:
                    self._stale = Stale(answer)
                    self._headline = Tag("h1")
                    Tag("p", LEAD, "lead")
                    self._sentences = Tag("p", "", "answer", role="status")
                    self._advice = Tag("p", "", "takeaway")
                    self._words = markup()
                    self._more = Fold("All numbers: delete, replace or perturb each word")
                    with self._more:
                        self._numbers = markup()
                    self._attention = AttentionFold(pool, lambda: self._drawn)
                with Tag("section", classes="form", aria_label="Your texts"):
                    self._form(query)
            self._pairs = ModelPairs(pool, self._model, self._slide)
        self._threshold = round(self._pairs.check["threshold"], 2)
        self._typed.show(query.get("threshold", f"{self._threshold:g}"))
        self._draw(self._drawn, self._comparison)
        self._type()

    def _form(self, query: dict[str, str]) -> None:
        called = self._mark, self.run
        self._texts = {
            name: Field("textarea", name, label, query.get(name, text), *called, rows=2, saved=True)
            for name, label, text in (
                ("first", "A text", self._drawn["first"]),
                ("second", "Another text", self._drawn["second"]),
            )
        }
        self._model = Field(
            *("select", "model", "Model", query.get("model", ""), self._mark),
            options={name: name for name in self._pool.settings.models},
        )
        self._typed = Field(
            "number", "threshold", "Your threshold", "", self._type, self.run, step=0.01
        )
        with Tag("div", classes="row-of"):
            button("Compare", self.run, main=True, id="run")
        self._line = WorkLine(self._pool)
        with Fold("Examples"), Tag("div", classes="row-of"):
            for name, pair in PAIRS.items():
                button(name, lambda pair=pair: self._take(*pair))

    async def visit(self) -> None:
        """Compare what the link or the server's own model asks for, where that is not there yet."""
        if self._settings() != self._drawn:
            await self.run()

    def _take(self, *pair: str) -> Any:
        for field, text in zip(self._texts.values(), pair, strict=True):
            field.show(text)
        return self.run()

    def _settings(self) -> dict[str, str]:
        """The arguments of the task."""
        fields = {"model": self._model, **self._texts}
        return {name: str(field.value).strip() for name, field in fields.items()}

    def _mark(self) -> None:
        """Grey a comparison of other settings."""
        self._stale.say(CHANGED if self._settings() != self._drawn else "")

    def _type(self) -> None:
        """Take the threshold that was typed, where the similarities can have it."""
        typed = self._pairs.threshold_of(str(self._typed.value))
        self._line.say(THRESHOLD if typed is None else "", problem=typed is None)
        if typed is not None:
            self._threshold = typed
            self._say()

    def _slide(self, threshold: float) -> None:
        """Take the threshold of the slider."""
        self._threshold = threshold
        self._typed.show(f"{threshold:g}")
        self._say()

    async def run(self) -> None:
        """Compare the texts, and check the model where its pairs are those of another."""
        settings = self._settings()
        try:
            for name in self._texts:
                self._pool.settings.require_words(settings[name])
        except InputError as error:
            self._line.refuse(error)
            return
        set_address("/", {"model": settings["model"], "threshold": f"{self._threshold:g}"})

        def show(part: dict[str, Any]) -> None:
            if "score" in part:
                self._draw(settings, part)

        answer = await self._line.run("two_texts", settings, show)
        if answer is not None and self._pairs.check["model"] != settings["model"]:
            await self._pairs.run()

    def _draw(self, settings: dict[str, str], comparison: dict[str, Any]) -> None:
        """Show a comparison, which may be without the numbers of words yet."""
        if settings is not self._drawn:
            self._attention.clear()
        self._drawn, self._comparison = settings, comparison
        self._words.set_content(comparison["words"])
        self._numbers.set_content(comparison["numbers"])
        self._more.set_visibility(bool(comparison["numbers"]))
        self._mark()
        self._say()

    def _say(self) -> None:
        """The answer at the threshold that is set."""
        comparison, threshold = self._comparison, self._threshold
        score, value, verdict = (comparison[name] for name in ("score", "value", "verdict"))
        known = self._pairs.check["model"] == self._drawn["model"]
        self._pairs.draw(threshold, value if known else None)
        hit = value >= threshold
        self._headline.text = (
            f"{score.capitalize()} {value:.3f}: a {'hit' if hit else 'miss'} "
            f"at your threshold {threshold:g}. {comparison['cut']}"
        ).strip()
        self._sentences.text = (
            f"The guard says {verdict} ({comparison['reason']}). {comparison['apart']}"
        ).strip()
        missed = NEEDLESS if verdict == "same" else MISSED
        guarded = GUARDED * (verdict == "different")
        self._advice.text = f"What to do: {ADVICE[verdict]}{guarded}." if hit else missed
