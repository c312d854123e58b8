"""The token in front of the page, and what a browser may load.

Hosts that are not the page's own are refused by Starlette, origins by the socket of NiceGUI
(`serve`). Neither asks for a token on a web socket or sends a content security policy.
"""

import hmac
import secrets
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.websockets import WebSocketClose

from wordsens.files import packaged_text

# Everything comes from this server. NiceGUI's own page has scripts in line and compiles templates:
# words are never a part of either.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self' 'unsafe-inline' "
    "'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "manifest-src 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}

COOKIE = "wordsens-visitor"

NO_TOKEN = "This page is open to those who have its token."
WRONG_TOKEN = "That token is wrong."


class Entrance:
    """An ASGI application around the page, which asks for the token; a cookie remembers who has
    given it."""

    def __init__(self, app: Any, token: str):
        self._page, self._token = app, token
        # It says nothing of the token, and ends with the server.
        self._visitor_key = secrets.token_urlsafe(32)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection."""
        if scope["type"] not in ("http", "websocket"):
            await self._page(scope, receive, send)
            return
        visitor = HTTPConnection(scope)
        typed = visitor.query_params.get("token", "")
        if _same(visitor.cookies.get(COOKIE, ""), self._visitor_key):
            answer = self._page
        elif scope["type"] == "websocket":
            answer = WebSocketClose(1008)
        elif _same(typed, self._token):
            answer = RedirectResponse(scope["path"], 303)
            answer.set_cookie(COOKIE, self._visitor_key, httponly=True, samesite="strict")
        else:
            message = WRONG_TOKEN if typed else NO_TOKEN
            form = packaged_text("app/static/login.html").replace("MESSAGE", message)
            answer = HTMLResponse(form, 401)
        await answer(scope, receive, send)


def _same(one: str, other: str) -> bool:
    """Equality in a time that does not depend on where they differ."""
    return hmac.compare_digest(*(text.encode("utf-8", "surrogateescape") for text in (one, other)))
