"""The server: its screens, its guard, its workers, and how it ends."""

import asyncio
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wordsens.app.request_filter import RequestFilter
from wordsens.app.settings import AppSettings
from wordsens.errors import InputError, MissingExtraError

os.environ.setdefault(
    "NICEGUI_STORAGE_PATH", str(Path(tempfile.gettempdir()) / "wordsens-no-storage")
)
# Nothing is stored; NiceGUI only wants to know where it would be.

try:
    import uvicorn
    from fastapi import FastAPI, Request
    from nicegui import Client, app, ui
    from nicegui.page import page
except ImportError as error:
    raise MissingExtraError("nicegui", "app", "the page") from error

from wordsens.app.paper import PaperScreen
from wordsens.app.parts import Box, Site, Text, screen
from wordsens.app.pool import Pool
from wordsens.app.two_texts import TwoTexts
from wordsens.app.your_text import YourText

CLOSING_SECONDS = 1
"""Seconds that open connections are waited for at Ctrl-C."""


def serve(settings: AppSettings, started: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C; `started` is called with its address once it can be opened.

    Raises:
        InputError: the address cannot be used, or there is no such model.
        WordsensError: no worker can be started.
    """
    with _listening(settings) as listener:
        pool = Pool(settings)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        port = listener.getsockname()[1]
        config = uvicorn.Config(
            RequestFilter(_application(Site(settings, pool)), settings),
            log_level="warning",
            timeout_graceful_shutdown=CLOSING_SECONDS,
            server_header=False,
            ws_max_size=1 << 20,
        )
        server = _Server(config)
        with suppress(KeyboardInterrupt):
            asyncio.run(_run(server, listener, pool, lambda: started(f"http://{host}:{port}")))


class _Server(uvicorn.Server):
    """A server that ends at Ctrl-C and SIGTERM. uvicorn's own raises the signal again inside the
    event loop, which may then stop before it has ended its threads, and the process never ends."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Inside, both signals ask the server to end."""

        def stop(*_: object) -> None:
            self.should_exit = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


async def _run(
    server: Any, listener: socket.socket, pool: Pool, started: Callable[[], None]
) -> None:
    pool.start()
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.02)
        if not serving.done():
            started()
        while not server.should_exit and not serving.done():
            await asyncio.sleep(0.05)
            server.should_exit = server.should_exit or pool.broken is not None
    finally:
        await asyncio.gather(pool.close(), serving)
    if pool.broken is not None:
        raise pool.broken


def _listening(settings: AppSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        raise InputError(
            f"`port` (={settings.port}) of {settings.host} cannot be used "
            f"({error.strerror or error}); is the page "
            "open already? give another with --port"
        ) from error


def _application(site: Site) -> Any:
    """The screens, as NiceGUI serves them."""

    def add(path: str, build: Callable[[Site, dict[str, str]], Any]) -> None:
        @ui.page(path)
        async def _(request: Request) -> None:
            built = build(site, dict(request.query_params))
            try:
                await ui.context.client.connected()
            except TimeoutError:  # of a program that only fetched the page
                return
            await built.visit()

    for path, build in {"/": TwoTexts, "/why": YourText, "/paper": PaperScreen}.items():
        add(path, build)

    @app.exception_handler(404)
    async def _(request: Request, error: Exception) -> Any:
        with Client(page(""), request=request) as client, screen(request.url.path):
            Text("h1", "There is no such screen.")
            with Box("p"):
                Text("a", "Compare two texts", href="/")
        return client.build_response(request, 404)

    application = FastAPI(openapi_url=None)
    looks: dict[str, Any] = {
        "title": "wordsens",
        "favicon": "🔎",
        "language": "en-US",
        "dark": None,
    }
    ui.run_with(application, **looks, tailwind=False, show_welcome_message=False)
    return application
