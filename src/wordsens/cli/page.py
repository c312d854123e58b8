"""`wordsens app`: the page to try. NiceGUI is loaded when the command runs."""

import json
import webbrowser
from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.app.settings import AppSettings
from wordsens.cli.options import AsJson, Quiet, Show, takes
from wordsens.cli.stopping import stopped_by_sigterm
from wordsens.cli.terminal import notice, stdout
from wordsens.errors import require_extra
from wordsens.version import __version__


@dataclass(frozen=True, kw_only=True)
class PageOptions(AppSettings):
    """The options of `wordsens app`: the settings of the server, and what is printed and opened."""

    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. Any address other than localhost requires --token."
        ),
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8765
    token: Annotated[
        str | None,
        typer.Option(
            help="A word that visitors must know, 12 characters or more; it is entered once.",
            envvar="WORDSENS_TOKEN",
        ),
    ] = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A model that visitors can choose: minilm (the default), a folder or a name; may "
            "be repeated."
        ),
    ] = None
    workers: Annotated[
        int, typer.Option(help="Processes that measure; each holds the models it uses.")
    ] = 2
    max_words: Annotated[int, typer.Option(help="Words per text.")] = 300
    max_seconds: Annotated[float, typer.Option(help="Seconds per measurement.")] = 180.0
    max_waiting: Annotated[
        int, typer.Option(help="Measurements that wait for a free worker, of all visitors.")
    ] = 12
    memory: Annotated[int, typer.Option(help="Memory per worker, in MiB.")] = 4096
    show: Show = False
    as_json: AsJson = False
    quiet: Quiet = False


@takes(PageOptions)
def page(options: PageOptions) -> None:
    """Serve a page to try: your own text in colours, the paper told with live experiments, a model
    checked.

    It is served to this machine alone, until Ctrl-C. Texts are measured here and are not kept.

    Example: wordsens app --open
    """
    require_extra("app", "the page", "nicegui")
    from wordsens.app.serve import serve

    if not options.loopback and not options.quiet:
        notice(
            f"everyone who reaches {options.host}:{options.port} and knows the token can measure "
            "texts here with "
            f"{', '.join(options.models)}, on up to {options.workers} processors; what is sent is "
            "not encrypted"
        )

    def started(address: str) -> None:
        if options.as_json:
            print(
                json.dumps({"command": "app", "version": __version__, "address": address}),
                flush=True,
            )
        else:
            stdout().print(f"page  {address}   (Ctrl-C ends it)", soft_wrap=True)
        if options.show:
            webbrowser.open(address)

    with stopped_by_sigterm():
        serve(options, started)
