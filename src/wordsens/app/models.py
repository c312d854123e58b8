"""The screens of a trained model: its attention on two sentences, its check, and a score explained by its words."""

from abc import ABC, abstractmethod
from typing import Any

from wordsens.app.parts import (
    Box,
    Button,
    Chart,
    Control,
    Lines,
    Markup,
    Site,
    Text,
    curve,
    grid,
    screen,
    set_address,
    visitor_connects,
)
from wordsens.app.request import OPPOSITES, PAIR
from wordsens.app.work_line import WorkLine
from wordsens.app.your_text import shipped
from wordsens.errors import require_choice
from wordsens.text.pairs import LENGTHS

RANDOM = "random attention (RAF)"
_SHIPPED = "Computed beforehand, with {}. Press {} for other settings."
_STALE = "The settings have changed. Press {}, or Enter in a text, for new numbers."


class _Form(ABC):
    """A screen with a form, a line of work and a result that is greyed once the settings have changed."""

    def __init__(self, site: Site, path: str, title: str, lead: str, action: str):
        self.site, self._path, self._action = site, path, action
        self._shown: dict[str, Any] | None = None
        with screen(path):
            with Box("section"):
                Text("h1", title)
                Text("p", lead, "lead")
                self.fields = Box("div", "choices wide")
                with Box("div", "row-of"):
                    Button(action, self.run, main=True, id="run")
                self.line = WorkLine(site)
            self._stale = Text("p", "", "stale-note", role="status")
            self.result = Box("section", aria_label="Result")

    def control(self, kind: str, name: str, label: str, value: Any, **more: Any) -> Control:
        """A control of the form."""
        with self.fields:
            built = Control(kind, name, label, value, self.mark, self.run, **more)
        if more.get("saved"):
            built.on("restored", lambda event: self._restore(built, event.args))
        return built

    def model_control(self, given: str | None, *further: str) -> Control:
        """The list of models; one of the link only where it is on the list."""
        models = [*self.site.settings.models, *further]
        chosen = given if given in models else models[0]
        return self.control("select", "model", "Model", chosen, options=[[one, one] for one in models])

    async def _restore(self, control: Control, value: str) -> None:
        control.show(value)
        await self.run()

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The arguments of the screen's task."""

    @abstractmethod
    def query(self) -> dict[str, str]:
        """The settings in the address: texts stay in the tab."""

    @abstractmethod
    def draw(self, answer: dict[str, Any]) -> None:
        """Show the answer of the screen's task."""

    def mark(self) -> None:
        """Grey a result of other settings."""
        stale = self._shown is not None and self.settings() != self._shown
        self.result.classes(add="stale") if stale else self.result.classes(remove="stale")
        self._stale.text = _STALE.format(self._action) if stale else ""

    def show_shipped(self, answer: dict[str, Any], **settings: Any) -> None:
        """Show an answer that was computed beforehand, with these settings."""
        self._shown = settings
        self.draw(answer)
        self.line.say(_SHIPPED.format(answer["model"], self._action))
        self.mark()

    async def run(self) -> None:
        """Run the task, unless the form is wrong."""
        settings = self.settings()
        most = self.site.settings.max_words
        texts = [value for name, value in settings.items() if name in ("first", "second", "text", "other")]
        empty = [one for one in texts[: 2 if "first" in settings else 1] if not one.strip()]
        if empty or any(len(one.split()) > most for one in texts):
            self.line.drop()
            self.line.say(f"Give sentences of two words or more, up to {most:,} words each.", problem=True)
            self.mark()
            return
        set_address(self._path, self.query())
        answer = await self.line.run(self._path.removeprefix("/"), settings)
        if answer is not None:
            self._shown = settings
            self.draw(answer)
        self.mark()


class AttentionScreen(_Form):
    """Figure 1 for any two sentences."""

    def __init__(self, site: Site, query: dict[str, str]):
        super().__init__(
            site,
            "/attention",
            "One word, and attention turns",
            "Attention decides how much each word, on the left, takes from every other, on the right. Change one word "
            "and see which lines move. [CLS] and [SEP] are marks that a model puts before and after a text.",
            "Compare",
        )
        self._first = self.control("text", "first", "First sentence", PAIR[0], saved=True)
        self._second = self.control("text", "second", "Second sentence, one word changed", PAIR[1], saved=True)
        self._model = self.model_control(query.get("model"), RANDOM)
        layer = int(query["layer"]) if query.get("layer", "").isdigit() else 1
        self._layer = self.control("range", "layer", "Layer", layer, least=1, most=max(12, layer), step=1)
        head = query.get("head", "")
        self._head = self.control(
            "select", "head", "Head", head, options=_heads(int(head) + 1 if head.isdigit() else 0)
        )
        for control in (self._layer, self._head, self._model):
            control.on("value", self.run)
        with self.result:
            self._sentence = Text("p", "", "answer")
            self._lines = Lines()
            with Box("details", "more"):
                Text("summary", "The numbers")
                self._grids = Markup()

    def settings(self) -> dict[str, Any]:
        model = require_choice("model", self._model.value, [*self.site.settings.models, RANDOM])
        return {
            "model": None if model == RANDOM else model,
            "first": str(self._first.value).strip(),
            "second": str(self._second.value).strip(),
            "layer": int(self._layer.value),
            "head": int(self._head.value) if str(self._head.value).isdigit() else None,
        }

    def query(self) -> dict[str, str]:
        return {"model": self._model.value, "layer": str(int(self._layer.value)), "head": str(self._head.value)}

    def draw(self, answer: dict[str, Any]) -> None:
        self._layer.change(most=answer["layers"])
        self._head.change(options=_heads(answer["heads"]))
        settings = self._shown or self.settings()
        titles = [settings["first"], settings["second"]]
        self._lines.show_pair(titles, answer["words"], answer["weights"], answer["changed"])
        self._grids.show("".join(map(grid, titles, answer["words"], answer["weights"])))
        if answer["share"] is None:
            self._sentence.text = "The sentences have different lengths, so each is shown by itself."
        elif answer["share"] == 0:
            self._sentence.text = "Attention is the same in both sentences."
        else:
            self._sentence.text = (
                f"{answer['share']:.1%} of all attention goes elsewhere; most of all that of “{answer['most']}”."
            )


def _heads(count: int) -> list[list[str]]:
    heads = [[str(at), f"head {at}"] for at in range(count)] if count > 1 else []
    return [["", "mean over the heads"], *heads]


class CheckScreen(_Form):
    """Does a model's embedding show a flipped meaning?"""

    def __init__(self, site: Site, query: dict[str, str]):
        super().__init__(
            site,
            "/check",
            "Does the model see a “not”?",
            "Two questions that differ in a “not” share almost every word, and many models put them closer together "
            "than two wordings of one meaning. This check compares opposites with near-duplicates of the same meaning.",
            "Check",
        )
        self._model = self.model_control(query.get("model"))
        lengths = [*LENGTHS, "all"]
        length = query.get("length") if query.get("length") in lengths else LENGTHS[0]
        self._length = self.control(
            "select", "length", "Length of the texts", length, options=[[one, one] for one in lengths]
        )
        with self.result:
            self._chart = Chart(
                "Similarities of opposites and of near-duplicates", "", "share of the pairs", x_scale=True
            )  # fmt: skip
            self._html = Markup()
        example = shipped()["check"]
        self.show_shipped(example, model=example["model"], length=LENGTHS[0])

    def settings(self) -> dict[str, Any]:
        return {
            "model": require_choice("model", self._model.value, self.site.settings.models),
            "length": require_choice("length", self._length.value, [*LENGTHS, "all"]),
        }

    def query(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.settings().items()}

    def draw(self, answer: dict[str, Any]) -> None:
        threshold = {
            "symbol": "none", "silent": True, "data": [{"xAxis": answer["threshold"]}],
            "lineStyle": {"color": "var(--ink)", "type": "solid"},
            "label": {"formatter": f"threshold {answer['threshold']:.2f}", "color": "var(--ink)"},
        }  # fmt: skip
        colours = {"opposites": "raf", "the same meaning": "rf"}
        name = f"{answer['similarity']} of the two texts"
        self._chart.options["xAxis"] |= {"name": name, "max": answer["most"]}
        self._chart.draw(
            [
                curve(
                    f"{name} ({one['count']})", colours[name], one["points"], step="middle", symbol="none",
                    areaStyle={"opacity": 0.25}, markLine=threshold if name == "opposites" else {},
                )
                for name, one in answer["values"].items()
            ]
        )  # fmt: skip
        self._html.show(
            "<p class='hint'>Right of the threshold two texts count as the same: a model that sees the meaning has its "
            f"opposites left of it. The threshold keeps nine of ten near-duplicates.</p>{answer['html']}"
        )


class ExplainScreen(_Form):
    """The words that carry a score."""

    def __init__(self, site: Site, query: dict[str, str]):
        super().__init__(
            site,
            "/explain",
            "Which words carry a score?",
            "A model says how alike two texts are. Which words does that rest on? Each word is taken out, exchanged "
            "for another, and moved as a vector; with one text alone, what moves is its own vector.",
            "Explain",
        )
        self._text = self.control("text", "first", "Text", OPPOSITES[0], saved=True)
        self._other = self.control("text", "second", "Other text (may be empty)", OPPOSITES[1], saved=True)
        self._model = self.model_control(query.get("model"))
        with self.result:
            self._html = Markup()
        example = shipped()["explain"]
        self.show_shipped(example, model=example["model"], text=OPPOSITES[0], other=OPPOSITES[1])

    def settings(self) -> dict[str, Any]:
        model = require_choice("model", self._model.value, self.site.settings.models)
        return {"model": model, "text": str(self._text.value), "other": str(self._other.value)}

    def query(self) -> dict[str, str]:
        return {"model": self._model.value}

    def draw(self, answer: dict[str, Any]) -> None:
        self._html.show(answer["html"])


async def attention(site: Site, query: dict[str, str]) -> None:
    """Build the screen, and compare the paper's pair."""
    page = AttentionScreen(site, query)
    if await visitor_connects():
        await page.run()


async def check(site: Site, query: dict[str, str]) -> None:
    """Build the screen with its example; with settings in the link, run it."""
    page = CheckScreen(site, query)
    if await visitor_connects() and query:
        await page.run()


async def explain(site: Site, query: dict[str, str]) -> None:
    """Build the screen with its example."""
    page = ExplainScreen(site, query)
    if await visitor_connects() and query:
        await page.run()
