"""The guard in front of the page: who may enter, and what a browser may load."""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from wordsens.app.settings import AppSettings

POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' "
    "'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action "
    "'self'; "
    "frame-ancestors 'none'; manifest-src 'self'"
)
"""Everything comes from this server. NiceGUI's own page has scripts in line and compiles templates:
words are never a part of either."""

COOKIE = "wordsens-visitor"

WRONG_TOKEN_SECONDS = 0.2
"""Seconds before a wrong token is refused: guessing takes time."""

_HEADERS = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
)

_LOCAL = ("localhost", "127.0.0.1", "::1")

_LOGIN = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>wordsens</title><style>
:root {{ color-scheme: light dark }}
body {{ font: 1rem/1.6 sans-serif; max-width: 32rem; margin: 12vh auto; padding: 0 1rem }}
input, button {{ font: inherit; padding: .4rem .6rem }}
</style></head><body><main><h1>wordsens</h1><p>{message}</p>
<form method="get" action="/"><label for="token">Token</label>
<p><input id="token" name="token" type="password" autocomplete="off" required> <button>Open the page</button></p>
</form></main></body></html>"""  # noqa: E501

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class RequestFilter:
    """An ASGI application around the page.

    It refuses hosts and origins that are not the page's own (a stranger's page that a visitor's
    browser has open could otherwise ask in the visitor's name), asks for the token where there is
    one, and adds the headers.
    """

    def __init__(self, page: Any, settings: AppSettings):
        self._page, self._settings = page, settings
        # A visitor who knew the token is known by this: it says nothing of the token, and ends with
        # the server.
        self._visitor_key = secrets.token_urlsafe(32)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._page(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        if not self._is_own(headers):
            await _refuse(scope, send, 403, "This address is not the page's own.")
        elif self._settings.token is None or self._admitted(headers):
            await self._page(scope, receive, _with_headers(send))
        else:
            await self._authenticate(scope, send)

    def _is_own(self, headers: dict[str, str]) -> bool:
        host = headers.get("host", "")
        if self._settings.loopback and (urlsplit(f"//{host}").hostname or "") not in _LOCAL:
            return False
        origin = headers.get("origin")
        return origin is None or urlsplit(origin).netloc == host

    def _admitted(self, headers: dict[str, str]) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and _same(cookie.value, self._visitor_key)

    async def _authenticate(self, scope: Message, send: Send) -> None:
        """Let in who brings the token, and ask all others for it."""
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if scope["type"] == "http" and given and _same(given, str(self._settings.token)):
            cookie = f"{COOKIE}={self._visitor_key}; HttpOnly; SameSite=Strict; Path=/"
            await _answer(send, 303, b"", (("location", scope["path"]), ("set-cookie", cookie)))
        else:
            await asyncio.sleep(WRONG_TOKEN_SECONDS * bool(given))
            message = (
                "That was not the token."
                if given
                else "This page is open to those who have its token."
            )
            await _refuse(scope, send, 401, message, html=True)


def _same(one: str, other: str) -> bool:
    """Equality in a time that does not depend on where they differ, nor on their lengths."""
    digests = (
        hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest() for text in (one, other)
    )
    return hmac.compare_digest(*digests)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_encoded(_HEADERS)]}
        await send(message)

    return sending


async def _refuse(
    scope: Message, send: Send, status: int, message: str, *, html: bool = False
) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    body = _LOGIN.format(message=escape(message)) if html else message
    kind = "text/html" if html else "text/plain"
    policy = (
        "content-security-policy",
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
    )
    headers = (("content-type", f"{kind}; charset=utf-8"), policy, *_HEADERS[1:])
    await _answer(send, status, body.encode(), headers)


async def _answer(
    send: Send, status: int, body: bytes, headers: tuple[tuple[str, str], ...]
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": _encoded(headers)})
    await send({"type": "http.response.body", "body": body})


def _encoded(headers: tuple[tuple[str, str], ...]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers]
