"""The guard: the token, hosts and origins, headers; and the settings and choices that are
refused."""

import asyncio

import pytest

from wordsens.app.request import MeasureRequest
from wordsens.app.request_filter import COOKIE, RequestFilter
from wordsens.app.settings import AppSettings
from wordsens.errors import InputError

TOKEN = "a long secret word"


async def _inside(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def answer(guard, *, headers=(), query=b"", kind="http"):
    """The first message for a request, and its headers."""
    sent = []
    given = {"host": "127.0.0.1:8765", **dict(headers)}
    scope = {
        "type": kind,
        "path": "/",
        "query_string": query,
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }

    async def send(message):
        sent.append(message)

    asyncio.run(guard(scope, None, send))
    return sent[0], {name.decode(): value.decode() for name, value in sent[0].get("headers", ())}


def status(*given, **how):
    """The status of the answer."""
    return answer(*given, **how)[0].get("status")


def test_without_a_token_this_machine_alone_is_served_with_a_policy():
    guard = RequestFilter(_inside, AppSettings())
    message, headers = answer(guard)
    assert message["status"] == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "http" not in headers["content-security-policy"]
    assert status(guard, headers={"host": "localhost:1"}) == 200
    assert status(guard, headers={"host": "[::1]:1"}) == 200


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}, {"host": ""}]
)
def test_a_strangers_page_cannot_ask_in_the_visitors_name(headers):
    guard = RequestFilter(_inside, AppSettings())
    assert status(guard, headers=headers) == 403
    message, _ = answer(guard, headers=headers, kind="websocket")
    assert message["type"] == "websocket.close"


def test_the_token_lets_in_once_and_a_cookie_from_then_on():
    guard = RequestFilter(_inside, AppSettings(host="0.0.0.0", token=TOKEN))
    assert status(guard) == 401
    assert status(guard, query=b"token=a+wrong+word") == 401
    assert answer(guard, kind="websocket")[0]["type"] == "websocket.close"
    message, headers = answer(guard, query=b"token=a+long+secret+word")
    assert (message["status"], headers["location"]) == (303, "/")
    cookie = headers["set-cookie"].partition(";")[0]
    assert TOKEN not in headers["set-cookie"]
    assert "HttpOnly; SameSite=Strict" in headers["set-cookie"]
    assert status(guard, headers={"cookie": cookie}) == 200
    assert status(guard, headers={"cookie": f"{COOKIE}=x"}) == 401
    assert (
        status(RequestFilter(_inside, AppSettings(token=TOKEN)), headers={"cookie": cookie}) == 401
    )


def test_a_visitors_string_is_never_a_model():
    asked = MeasureRequest(text="one two", map="model", model="/etc")
    with pytest.raises(InputError, match="must be one of minilm"):
        asked.require_allowed(("minilm",), 300)


def test_a_link_holds_what_was_chosen_but_not_the_text():
    asked = MeasureRequest(text="one two", map="drf", depth=3, share=0.5, search="normal", seed=7)
    assert "text" not in asked.query()
    assert MeasureRequest.of_query(asked.query(), MeasureRequest(text="one two")) == asked
    wrong = {"map": "other", "share": "nan", "layer": "x", "seed": "-1", "search": "all"}
    assert MeasureRequest.of_query(wrong, MeasureRequest()) == MeasureRequest()
