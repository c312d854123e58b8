"""`wordsens app`: the page to try. NiceGUI is loaded when the command runs."""

import json
import webbrowser
from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.app.settings import AppSettings, Limits
from wordsens.cli.options import AsJson, Quiet, takes
from wordsens.version import __version__

_USUAL, _LIMITS = AppSettings(), Limits()
_LIMIT = "Limits"


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """The options of `wordsens app`."""

    host: Annotated[
        str, typer.Option(help="The address to serve on; another than this machine's own needs --token.")
    ] = _USUAL.host
    port: Annotated[int, typer.Option(help="0 for any that is free.")] = _USUAL.port
    token: Annotated[
        str | None,
        typer.Option(
            envvar="WORDSENS_TOKEN",
            help="A word that visitors must know, 12 characters or more; it is entered once.",
            show_default=False,
        ),
    ] = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A model that visitors can choose: minilm, a folder or a name on the hub; may be repeated. "
            "; default: minilm.",
            show_default=False,
        ),
    ] = None
    workers: Annotated[int, typer.Option(help="Processes that measure; each holds the models it uses.")] = (
        _USUAL.workers
    )
    max_words: Annotated[int, typer.Option(help="Of a text.", rich_help_panel=_LIMIT)] = _LIMITS.words
    max_seconds: Annotated[float, typer.Option(help="Of one measurement.", rich_help_panel=_LIMIT)] = _LIMITS.seconds
    max_waiting: Annotated[
        int, typer.Option(help="Measurements that wait for a free worker.", rich_help_panel=_LIMIT)
    ] = _LIMITS.waiting
    memory: Annotated[int, typer.Option(help="Of a worker, in MiB.", rich_help_panel=_LIMIT)] = _LIMITS.memory_mb
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        _ = self.settings

    @property
    def settings(self) -> AppSettings:
        """The settings of the server."""
        return AppSettings(
            host=self.host,
            port=self.port,
            token=self.token,
            models=tuple(dict.fromkeys(self.model or _USUAL.models)),
            workers=self.workers,
            limits=Limits(
                words=self.max_words, seconds=self.max_seconds, waiting=self.max_waiting, memory_mb=self.memory
            ),
        )


@takes(PageOptions)
def page(options: PageOptions) -> None:
    """Serve a page to try: your own text in colours, the paper told with live experiments, a model checked.

    It is served to this machine alone, until Ctrl-C. Texts are measured here and are not kept.

    Example: wordsens app --open
    """
    from wordsens.app.serve import serve
    from wordsens.cli.stopping import stopped_by_sigterm
    from wordsens.cli.terminal import notice, stdout

    settings = options.settings
    if not settings.loopback and not options.quiet:
        notice(
            f"everyone who reaches {settings.host}:{settings.port} and knows the token can measure texts here with "
            f"{', '.join(settings.models)}, on up to {settings.workers} processors; what is sent is not encrypted"
        )

    def started(address: str) -> None:
        if options.as_json:
            print(json.dumps({"command": "app", "version": __version__, "address": address}), flush=True)
        else:
            stdout().print(f"page  {address}   (Ctrl-C ends it)", markup=False, soft_wrap=True)
        if options.show:
            webbrowser.open(address)

    with stopped_by_sigterm():
        serve(settings, started)
