"""The first screen: attention and a fully connected layer compared, then the same for a text of
one's own."""

from dataclasses import asdict, replace
from typing import Any

from wordsens.app.measurement import Answers, ColouredText, Measurement
from wordsens.app.parts import Box, Button, Field, Site, Text, screen, set_address, shipped
from wordsens.app.request import EXAMPLES, LEAST_SHARE, MAPS, MOST_SHARE, POOLS, MeasureRequest
from wordsens.app.work_line import WorkLine, kind_message
from wordsens.errors import InputError
from wordsens.maps.registry import MODEL

LEAD = (
    "Colour: how far a push of a word’s vector moves the output. Click a word for a real word in "
    "its place. That a "
    "push can move a layer says nothing about whether a trained model tells “on” from “off”; it "
    "may not."
)

_SEARCHES = (
    ("quick", "quick"),
    ("normal", "normal: several times slower"),
    ("thorough", "thorough"),
)


class YourText:
    """The screen of one visitor, with the settings of the link."""

    def __init__(self, site: Site, query: dict[str, str]):
        self._site = site
        self._default = MeasureRequest(
            text=next(iter(EXAMPLES.values())), model=site.settings.models[0]
        )
        self._request = MeasureRequest.of_query(query, self._default)
        if self._request.model not in site.settings.models:
            self._request = replace(self._request, model=self._default.model)
        with screen("/why"):
            self._sentences = Text("h1"), Text("p", "", "answer")
            Text("p", LEAD, "lead")
            with Box("div", "stage"):
                with Box("div", "colours"):
                    self._pins = Box("div")
                    self._results = Box("div", id="result")
                with Box("section", "form", aria_label="Your text"):
                    self._form()
                self._details = Box("section", "details", aria_label="One word in detail")
            example = shipped()
            known = {int(row): details for row, details in example["known"].items()}
            request = replace(self._default, model=self._request.model)
            self._shown = self._view(request, example["comparison"], known)
            self._mark()
            for name, value in query.items():
                if str(getattr(self._request, name, value)) != value:
                    self._line.say(
                        f"The link’s {name}, “{value}”, is not one that this page has.",
                        problem=True,
                    )

    async def visit(self) -> None:
        """With settings in the link, measure what they say."""
        if self._request != self._default:
            await self.measure()

    def _view(
        self, request: MeasureRequest, answers: Answers, known: dict[int, Answers]
    ) -> Measurement:
        places = self._results, self._details, self._sentences
        return Measurement(self._site, request, answers, known, *places)

    def _form(self) -> None:
        linked = self._request
        limit = self._site.settings.max_words
        self._text = Field(
            "textarea",
            "text",
            "Your text",
            linked.text,
            self._mark,
            self.measure,
            rows=3,
            saved=True,
            hint=f"Up to {limit:,} words, measured on this machine and not stored. Press Enter.",
        )
        with Box("div", "row-of"):
            Button("Measure", self.measure, main=True, id="measure")
            self._pin = Button("Pin to compare", self._pin_result, id="pin-result")
            self._unpin = Button("Unpin", self._unpin_result, id="unpin-result")
        self._pin.set_visibility(False)
        self._unpin.set_visibility(False)
        self._line = WorkLine(self._site)
        with Box("details", "more"):
            Text("summary", "Examples")
            with Box("div", "row-of"):
                for name, text in EXAMPLES.items():
                    Button(name, lambda text=text: self._take(text))
        opened = {"open": ""} if linked.query() else {}
        with Box("details", "more", **opened):
            Text("summary", "Settings")
            with Box("div", "choices"):
                self._controls = self._settings(linked)

    def _settings(self, linked: MeasureRequest) -> dict[str, Field]:
        """The controls by the names of the request's fields."""

        def control(
            name: str, label: str, kind: str = "range", options: Any = (), **more: Any
        ) -> Field:
            listed = [[key, label] for key, label in dict(options).items()]
            value = getattr(linked, name)
            more |= {"options": listed} if listed else {}
            return Field(kind, name, label, value, self._mark, self.measure, **more)

        controls = [
            control(
                "map",
                "What reads the text",
                "select",
                MAPS,
                hint="A random layer is untrained: it shows what an architecture can do, not what "
                "your text means. The "
                "last choice is a trained model.",
            ),
            control(
                "model", "Model", "select", {name: name for name in self._site.settings.models}
            ),
            control("layer", "Layer", "text", hint="0 is what enters the model, −1 the last."),
            control("pool", "What is measured", "select", POOLS),
            control("depth", "Layers", least=2, most=8, step=1),
            control(
                "share",
                "How far a word’s vector may move",
                least=LEAST_SHARE,
                most=MOST_SHARE,
                step=0.05,
                unit=" × its length",
            ),
            control("search", "Search", "select", _SEARCHES),
        ]
        return {str(each.props["name"]): each for each in controls}

    def _take(self, text: str) -> Any:
        self._text.show(text)
        return self.measure()

    def request(self) -> MeasureRequest:
        """The request that the form makes.

        Raises:
            InputError: a value that is not offered, an empty or too long text.
        """
        values = {name: control.value for name, control in self._controls.items()}
        try:
            values["layer"] = int(str(values["layer"]).replace("\N{MINUS SIGN}", "-"))
        except ValueError:
            raise InputError(
                f"`layer` (={values['layer']!r}) must be a whole number, such as 2 or -1"
            ) from None
        values |= {"depth": int(values["depth"]), "share": round(float(values["share"]), 4)}
        request = MeasureRequest(text=str(self._text.value), seed=self._request.seed, **values)
        request.require_allowed(self._site.settings.models, self._site.settings.max_words)
        return request

    def _mark(self) -> None:
        """Show the controls that the map has, and grey a result that is not of these settings."""
        name = self._controls["map"].value
        for setting in ("model", "layer", "pool"):
            self._controls[setting].set_visibility(name == MODEL)
        self._controls["depth"].set_visibility(name == "drf")
        self._pin.set_visibility(not self._stale)
        self._shown.mark() if self._stale else self._shown.mark("")

    @property
    def _stale(self) -> bool:
        """True where the result is of other settings than the form's."""
        try:
            return self.request() != self._shown.request
        except InputError:
            return True

    async def measure(self) -> None:
        """Measure what the form says; what is shown stays until it is measured, and what ran before
        is ended."""
        try:
            request = self.request()
        except InputError as error:
            self._line.drop()
            self._line.say(kind_message(str(error)), problem=True)
            self._mark()
            return
        if self._stale:
            self._shown.mark("The new numbers are on their way.")
        set_address("/why", request.query())
        answers = await self._line.run("measure", {"request": asdict(request)})
        if answers is None:
            self._mark()
            return
        self._shown.remove()
        self._shown = self._view(request, answers, {})
        self._mark()
        await self._shown.pick(self._shown.best)

    def _pin_result(self) -> None:
        """Keep a copy of the coloured words above the results to come."""
        self._unpin_result()
        shown = self._shown
        with self._pins:
            ColouredText(
                shown.request, shown.answers, lambda row: None, f"Pinned: {self._sentences[0].text}"
            )
        self._unpin.set_visibility(True)

    def _unpin_result(self) -> None:
        self._pins.clear()
        self._unpin.set_visibility(False)
