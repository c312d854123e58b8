"""The screens of a trained model: its attention on two sentences, its check, and a score explained by its words."""

from abc import ABC, abstractmethod
from typing import Any

from wordsens.app.parts import Box, Button, Chart, Field, Lines, Markup, Site, Text, curve, grid, screen, set_address
from wordsens.app.request import OPPOSITES, PAIR
from wordsens.app.work_line import WorkLine
from wordsens.app.your_text import shipped
from wordsens.errors import require_choice
from wordsens.text.pairs import LENGTHS

RANDOM = "random attention (RAF)"


class _Form(ABC):
    """A screen with a form, a line of work and a result that is greyed once the settings have changed."""

    path: str
    title: str
    lead: str
    action: str

    def __init__(self, site: Site, query: dict[str, str]):
        self.site, self.link = site, query
        self._drawn: dict[str, Any] | None = None
        """The settings of the result."""
        with screen(self.path):
            with Box("section"):
                Text("h1", self.title)
                Text("p", self.lead, "lead")
                self._fields = Box("div", "choices wide")
                with Box("div", "row-of"):
                    Button(self.action, self.run, main=True, id="run")
                self._line = WorkLine(site)
            self._stale = Text("p", "", "stale-note", role="status")
            self._result = Box("section", aria_label="Result")
        with self._fields:
            self.build_fields()
        with self._result:
            self.build_result()

    @abstractmethod
    def build_fields(self) -> None:
        """Build the controls of the form."""

    @abstractmethod
    def build_result(self) -> None:
        """Build the places of the result, with the shipped one where there is one."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The arguments of the screen's task."""

    @abstractmethod
    def query(self) -> dict[str, str]:
        """The settings in the address: texts stay in the tab."""

    @abstractmethod
    def draw(self, answer: dict[str, Any]) -> None:
        """Show the answer of the screen's task."""

    def control(self, kind: str, name: str, label: str, value: Any, **more: Any) -> Field:
        """A control of the form."""
        built = Field(kind, name, label, value, self._mark, self.run, **more)
        if more.get("saved"):
            built.on("restored", lambda event: self._restore(built, event.args))
        return built

    async def _restore(self, control: Field, text: str) -> None:
        control.show(text)
        await self.run()

    def model_control(self, *further: str) -> Field:
        """The list of models; one of the link only where it is on the list."""
        models = [*self.site.settings.models, *further]
        linked = self.link.get("model")
        chosen = linked if linked in models else models[0]
        return self.control("select", "model", "Model", chosen, options=[[name, name] for name in models])

    def show_shipped(self, answer: dict[str, Any], **settings: Any) -> None:
        """Show an answer that was computed beforehand, with these settings and its model."""
        self._drawn = {"model": answer["model"], **settings}
        self.draw(answer)
        self._line.say(f"Computed beforehand, with {answer['model']}. Press {self.action} for other settings.")
        self._mark()

    def _mark(self) -> None:
        """Grey a result of other settings."""
        stale = self._drawn is not None and self.settings() != self._drawn
        self._result.classes(add="stale") if stale else self._result.classes(remove="stale")
        note = f"The settings have changed. Press {self.action}, or Enter in a text, for new numbers."
        self._stale.text = note if stale else ""

    async def visit(self) -> None:
        """Run what a link asks for; without one, what no shipped result shows."""
        if self.link or self._drawn is None:
            await self.run()

    async def run(self) -> None:
        """Run the task, unless the form is wrong."""
        settings = self.settings()
        most = self.site.settings.max_words
        texts = [settings[name] for name in ("first", "second", "text", "other") if name in settings]
        needed = texts[: 2 if "first" in settings else 1]
        if not all(map(str.strip, needed)) or any(len(text.split()) > most for text in texts):
            self._line.drop()
            self._line.say(f"Give sentences of two words or more, up to {most:,} words each.", problem=True)
            self._mark()
            return
        set_address(self.path, self.query())
        answer = await self._line.run(self.path.removeprefix("/"), settings)
        if answer is not None:
            self._drawn = settings
            self.draw(answer)
        self._mark()


class AttentionScreen(_Form):
    """Figure 1 for any two sentences."""

    path, title, action = "/attention", "One word, and attention turns", "Compare"
    lead = (
        "Attention decides how much each word, on the left, takes from every other, on the right. Change one word "
        "and see which lines move. [CLS] and [SEP] are marks that a model puts before and after a text."
    )

    def build_fields(self) -> None:
        self._first = self.control("text", "first", "First sentence", PAIR[0], saved=True)
        self._second = self.control("text", "second", "Second sentence, one word changed", PAIR[1], saved=True)
        self._model = self.model_control(RANDOM)
        layer = int(self.link["layer"]) if self.link.get("layer", "").isdigit() else 1
        self._layer = self.control("range", "layer", "Layer", layer, least=1, most=max(12, layer), step=1)
        head = self.link.get("head", "")
        heads = _heads(int(head) + 1 if head.isdigit() else 0)
        self._head = self.control("select", "head", "Head", head, options=heads)
        for control in (self._layer, self._head, self._model):
            control.on("value", self.run)

    def build_result(self) -> None:
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
        settings = self._drawn or self.settings()
        titles = [settings["first"], settings["second"]]
        self._lines.show_pair(titles, answer["words"], answer["weights"], answer["changed"])
        self._grids.show("".join(map(grid, titles, answer["words"], answer["weights"])))
        if answer["share"] is None:
            self._sentence.text = "The sentences have different lengths, so each is shown by itself."
        elif answer["share"] == 0:
            self._sentence.text = "Attention is the same in both sentences."
        else:
            turned = f"most of all that of “{answer['most']}”"
            self._sentence.text = f"{answer['share']:.1%} of all attention goes elsewhere; {turned}."


def _heads(count: int) -> list[list[str]]:
    heads = [[str(head), f"head {head}"] for head in range(count)] if count > 1 else []
    return [["", "mean over the heads"], *heads]


class CheckScreen(_Form):
    """Does a model's embedding show a flipped meaning?"""

    path, title, action = "/check", "Does the model see a “not”?", "Check"
    lead = (
        "Two questions that differ in a “not” share almost every word, and many models put them closer together "
        "than two wordings of one meaning. This check compares opposites with near-duplicates of the same meaning."
    )

    def build_fields(self) -> None:
        self._model = self.model_control()
        lengths = [*LENGTHS, "all"]
        length = self.link.get("length") if self.link.get("length") in lengths else LENGTHS[0]
        options = [[name, name] for name in lengths]
        self._length = self.control("select", "length", "Length of the texts", length, options=options)

    def build_result(self) -> None:
        self._chart = Chart("Similarities of opposites and of near-duplicates", "", "share of the pairs")
        self._html = Markup()
        self.show_shipped(shipped()["check"], length=LENGTHS[0])

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
        similarity = f"{answer['similarity']} of the two texts"
        self._chart.options["xAxis"] |= {"name": similarity, "max": answer["most"], "scale": True}
        filled = {"step": "middle", "symbol": "none", "areaStyle": {"opacity": 0.25}}
        curves = [
            curve(f"{name} ({values['count']})", colour, values["points"], **filled, markLine=line)
            for (name, values), colour, line in zip(
                answer["values"].items(), ("opposites", "near-duplicates"), (threshold, {}), strict=True
            )
        ]
        self._chart.draw(curves)
        self._html.show(
            "<p class='hint'>Right of the threshold two texts count as the same: a model that sees the meaning has its "
            f"opposites left of it. The threshold keeps nine of ten near-duplicates.</p>{answer['html']}"
        )


class ExplainScreen(_Form):
    """The words that carry a score."""

    path, title, action = "/explain", "Which words carry a score?", "Explain"
    lead = (
        "A model says how alike two texts are. Which words does that rest on? Each word is taken out, exchanged "
        "for another, and moved as a vector; with one text alone, what moves is its own vector."
    )

    def build_fields(self) -> None:
        self._text = self.control("text", "first", "Text", OPPOSITES[0], saved=True)
        self._other = self.control("text", "second", "Other text (may be empty)", OPPOSITES[1], saved=True)
        self._model = self.model_control()

    def build_result(self) -> None:
        self._html = Markup()
        self.show_shipped(shipped()["explain"], text=OPPOSITES[0], other=OPPOSITES[1])

    def settings(self) -> dict[str, Any]:
        model = require_choice("model", self._model.value, self.site.settings.models)
        return {"model": model, "text": str(self._text.value), "other": str(self._other.value)}

    def query(self) -> dict[str, str]:
        return {"model": self._model.value}

    def draw(self, answer: dict[str, Any]) -> None:
        self._html.show(answer["html"])
