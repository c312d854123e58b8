"""Things that a visitor can take along: files, links, and the command and the Python that give the same numbers."""

import shlex
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from wordsens.app.request import MeasureRequest
from wordsens.app.view.parts import Box, Button, Text
from wordsens.app.view.shell import Site
from wordsens.app.work.messages import DONE
from wordsens.errors import WordsensError

_FILES = {
    "report": ("Report", "wordsens-report.html", "text/html"),
    "records": ("Records", "wordsens-records.parquet", "application/octet-stream"),
    "figure": ("Figure", "wordsens-figure.png", "image/png"),
}


class TakeAway:
    """The part below a finished measurement."""

    def __init__(self, site: Site, request: MeasureRequest, found: dict[str, Any]):
        self._site, self._found = site, found
        self._command = request.command(found["radius"])
        with Box("div", "row-of", role="group", aria_label="Take it along"):
            for form, (name, *_) in _FILES.items():
                Button(name, lambda form=form: self.download(form), id=f"get-{form}")
            for name, own in (("Link to these settings", False), ("Link with the text in it", True)):
                address = f"/?{urlencode(request.query(with_text=own))}"
                Text("a", name, href=address, id="link-text" if own else "link")
            self._said = Text("span", "", "hint", role="status")
        with Box("details", "more"):
            Text("summary", "The command and the Python that give the same numbers")
            Text("pre", self._command, tabindex="0", id="command")
            Text("pre", request.python(found["radius"], found["searched"]), tabindex="0", id="python")

    async def download(self, form: str) -> None:
        """Make the file and send it."""
        _, file, kind = _FILES[form]
        self._said.text = "Writing …"
        arguments = {"record": self._found["record"], "form": form, "arguments": shlex.split(self._command)[1:]}
        try:
            job = self._site.pool.submit("export", arguments, ui.context.client.id, brief=True)
        except WordsensError as error:
            self._said.text = str(error)
            return
        async for answer in job.answers():
            if answer.kind == DONE:
                ui.download(answer.value["file"], file, kind)
            self._said.text = "" if answer.kind == DONE else "This file could not be written; please try again."
