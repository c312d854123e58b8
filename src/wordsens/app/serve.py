"""The server: its screens, its guard, its workers, and how it ends."""

import asyncio
import os
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from wordsens.app.guard import Guard
from wordsens.app.settings import AppSettings
from wordsens.errors import InputError, MissingExtraError

os.environ.setdefault("NICEGUI_STORAGE_PATH", str(Path(tempfile.gettempdir()) / "wordsens-no-storage"))
# Nothing is stored; NiceGUI only wants to know where it would be.

try:
    import uvicorn
    from fastapi import FastAPI, Request
    from nicegui import ui
except ImportError as error:
    raise MissingExtraError("nicegui", "app", "the page") from error

from wordsens.app.pages.attention import attention
from wordsens.app.pages.check import check
from wordsens.app.pages.explain import explain
from wordsens.app.pages.paper import paper
from wordsens.app.pages.your_text import your_text
from wordsens.app.view.shell import Site
from wordsens.app.work.pool import Pool

CLOSING = 1
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
            Guard(_application(Site(settings, pool)), settings),
            log_level="warning",
            timeout_graceful_shutdown=CLOSING,
            server_header=False,
            ws_max_size=1 << 20,
        )
        server = uvicorn.Server(config)
        with suppress(KeyboardInterrupt):
            asyncio.run(_run(server, listener, pool, lambda: started(f"http://{host}:{port}")))


async def _run(server: Any, listener: socket.socket, pool: Pool, started: Callable[[], None]) -> None:
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
            f"`port` (={settings.port}) of {settings.host} cannot be used ({error.strerror or error}); is the page "
            "open already? give another with --port"
        ) from error


def _application(site: Site) -> Any:
    """The screens, as NiceGUI serves them."""

    @ui.page("/")
    async def _(request: Request) -> None:
        await your_text(site, dict(request.query_params))

    for path, build in {"/paper": paper, "/attention": attention, "/check": check, "/explain": explain}.items():
        ui.page(path)(partial(build, site))

    made = FastAPI(openapi_url=None)
    ui.run_with(
        made, title="wordsens", language="en-US", tailwind=False, show_welcome_message=False, dark=None, favicon="🔎"
    )
    return made
