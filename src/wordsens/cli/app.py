"""`wordsens app`: the page to try. NiceGUI is loaded when the command runs."""

import sys
import webbrowser
from typing import Annotated

import typer

from wordsens.app.settings import AppSettings
from wordsens.cli.command import CommandRun, Show, command, option
from wordsens.cli.terminal import print_json, stdout
from wordsens.version import __version__


@command("app")
def app(
    *,
    host: Annotated[
        str, option("Address to listen on. Any address other than localhost requires --token.")
    ] = "127.0.0.1",
    port: Annotated[int, option("Port to listen on; 0 picks a free one.")] = 8765,
    model: Annotated[
        list[str] | None,
        option(
            "A model that visitors can choose: minilm (the default), a folder or a name; may be "
            "repeated."
        ),
    ] = None,
    workers: Annotated[int, option("Worker processes; each loads the models it uses.")] = 2,
    max_words: Annotated[int, option("Maximum number of words per text.")] = 300,
    max_seconds: Annotated[float, option("Time limit of one measurement, in seconds.")] = 180.0,
    max_waiting: Annotated[
        int,
        option(
            "Maximum number of measurements that may wait for a free worker, over all visitors."
        ),
    ] = 12,
    memory: Annotated[int, option("Memory limit per worker, in MiB.")] = 4096,
    token: Annotated[
        str | None,
        typer.Option(
            help="Password that visitors enter once; at least 12 characters.",
            envvar="WORDSENS_TOKEN",
        ),
    ] = None,
    show: Show = False,
    run: CommandRun,
) -> None:
    """Serve a web page: compare two texts under your model, see why attention notices a word, try
    the paper's experiments.

    By default only this machine can open the page. Press Ctrl-C to stop it. Texts are measured on
    this machine and are not stored.

    Example: wordsens app --open
    """
    settings = AppSettings(
        host=host,
        port=port,
        token=token,
        model=model,
        workers=workers,
        max_words=max_words,
        max_seconds=max_seconds,
        max_waiting=max_waiting,
        memory=memory,
    )
    from wordsens.app.serve import serve

    if not settings.loopback:
        run.notice(
            f"everyone who reaches {host}:{port} and knows the token can measure texts here with "
            f"{', '.join(settings.models)}, on up to {workers} processors; what is sent is not "
            "encrypted"
        )

    def started(address: str) -> None:
        if run.as_json:
            print_json({"command": "app", "version": __version__, "address": address})
        else:
            stdout().print(f"page  {address}   (Ctrl-C ends it)", soft_wrap=True)
        sys.stdout.flush()
        if show:
            webbrowser.open(address)

    serve(settings, started)
