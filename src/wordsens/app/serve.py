"""The server: its screens, who may enter, its workers, and how it ends."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from nicegui import Client, app, core, ui
from nicegui.page import page
from starlette.middleware.trustedhost import TrustedHostMiddleware

from wordsens.app.entrance import HEADERS, Entrance
from wordsens.app.paper import PaperScreen
from wordsens.app.parts import Tag, screen
from wordsens.app.pool import Pool
from wordsens.app.settings import AppSettings
from wordsens.app.two_texts import TwoTexts
from wordsens.app.why import Why
from wordsens.errors import InputError, argument
from wordsens.workers import WorkerPool

# Seconds that open connections are waited for at Ctrl-C.
CLOSING_SECONDS = 1

_LOCAL = ("localhost", "127.0.0.1", "::1", "[::1]")


def serve(settings: AppSettings, started: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C; `started` is called with its address once it can be opened.

    Raises:
        InputError: the address cannot be used, or there is no such model.
        WordsensError: no worker can be started.
    """
    with _listening(settings) as listener, WorkerPool(settings.workers) as workers:
        pool = Pool(settings, workers)
        config = uvicorn.Config(
            _application(pool),
            log_level="warning",
            timeout_graceful_shutdown=CLOSING_SECONDS,
            server_header=False,
            ws_max_size=1 << 20,
        )
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        address = f"http://{host}:{listener.getsockname()[1]}"
        app.on_startup(lambda: started(address))
        with suppress(KeyboardInterrupt):
            asyncio.run(_run(_Server(config), listener, pool))


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


async def _run(server: uvicorn.Server, listener: socket.socket, pool: Pool) -> None:
    """Serve until a signal comes, or until no worker can load the models."""
    prepared = pool.prepare()

    def check(_: object) -> None:
        server.should_exit = server.should_exit or prepared.exception() is not None

    prepared.add_done_callback(check)
    await server.serve(sockets=[listener])
    if prepared.done():
        prepared.result()
    prepared.cancel()


def _listening(settings: AppSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        raise InputError(
            f"{argument('port')} (={settings.port}) of {settings.host} cannot be used "
            f"({error.strerror or error}); is the page open already? give another "
            f"{argument('port')}"
        ) from error


def _application(pool: Pool) -> FastAPI:
    """The screens, as NiceGUI serves them."""

    def add(path: str, build: Callable[[Pool, dict[str, str]], Any]) -> None:
        @ui.page(path)
        async def _(request: Request) -> None:
            built = build(pool, dict(request.query_params))
            try:
                await ui.context.client.connected()
            except TimeoutError:  # of a program that only fetched the page
                return
            await built.visit()

    for path, build in {"/": TwoTexts, "/why": Why, "/paper": PaperScreen}.items():
        add(path, build)

    @app.exception_handler(404)
    async def _(request: Request, error: Exception) -> Any:
        with Client(page(""), request=request) as client, screen(request.url.path):
            Tag("h1", "There is no such screen.")
            with Tag("p"):
                Tag("a", "Compare two texts", href="/")
        return client.build_response(request, 404)

    application = FastAPI(openapi_url=None)
    ui.run_with(
        application,
        title="wordsens",
        favicon="🔎",
        language="en-US",
        dark=None,
        tailwind=False,
        show_welcome_message=False,
    )
    return guarded(application, pool.settings)


def guarded(application: FastAPI, settings: AppSettings) -> FastAPI:
    """The application, to which a page of a stranger that a visitor's browser has open can send
    nothing, in front of which a token is asked for, and whose answers have HEADERS."""
    # None: the page's own origin; NiceGUI lets every origin open its socket.
    core.sio.eio.cors_allowed_origins = None
    if settings.token is not None:
        application.add_middleware(Entrance, token=settings.token)
    if settings.loopback:
        application.add_middleware(TrustedHostMiddleware, allowed_hosts=_LOCAL)

    @application.middleware("http")
    async def _(request: Request, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    return application
