"""Who may enter the page: the token, hosts and origins, headers; and choices that are refused."""

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from wordsens.app.entrance import COOKIE
from wordsens.app.request import MeasureRequest
from wordsens.app.settings import AppSettings
from wordsens.errors import InputError

serving = pytest.importorskip("wordsens.app.serve")
socketio = pytest.importorskip("socketio")
TOKEN = "a long secret word"


async def inside(socket: WebSocket):
    await socket.accept()


def visitor(**settings):
    """A client of a page that says it is inside."""
    application = serving.FastAPI()
    application.get("/")(lambda: "inside")
    application.websocket("/")(inside)
    application.mount(
        "/socket", socketio.ASGIApp(serving.core.sio, socketio_path="/socket/socket.io")
    )
    guarded = serving.guarded(application, AppSettings(**settings))
    return TestClient(guarded, base_url="http://127.0.0.1:8765", follow_redirects=False)


def test_without_a_token_this_machine_alone_is_served_with_a_policy():
    client = visitor()
    answer = client.get("/")
    assert answer.text == '"inside"'
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "http" not in answer.headers["content-security-policy"]
    for host in ("localhost:1", "[::1]:1"):
        assert client.get("/", headers={"host": host}).status_code == 200
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://127.0.0.1:8765"}, 200),
        ({"origin": "http://evil.example"}, 400),
        ({"host": "evil.example", "origin": "http://evil.example"}, 400),
    ],
)
def test_a_strangers_page_cannot_open_the_socket_in_the_visitors_name(headers, status):
    polling = "/socket/socket.io/?EIO=4&transport=polling"
    assert visitor().get(polling, headers=headers).status_code == status


def test_the_token_lets_in_once_and_a_cookie_from_then_on():
    client = visitor(host="0.0.0.0", token=TOKEN)
    assert client.get("/").status_code == 401
    assert client.get("/?token=a+wrong+word").status_code == 401
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/"):
        pass
    answer = client.get("/?token=a+long+secret+word")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert TOKEN not in answer.headers["set-cookie"]
    assert "httponly; path=/; samesite=strict" in answer.headers["set-cookie"].lower()
    assert client.get("/").status_code == 200
    for cookie in (client.cookies[COOKIE], "x"):
        other = visitor(host="0.0.0.0", token=TOKEN)
        other.cookies[COOKIE] = cookie
        assert other.get("/").status_code == 401


@pytest.mark.parametrize(
    "wrong", [{"map": "other"}, {"layer": "x"}, {"search": "all"}, {"model": "/etc"}, {"pool": "?"}]
)
def test_what_the_page_does_not_offer_is_refused_by_name(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(InputError, match=name) as refused:
        MeasureRequest.of({"text": "one two"} | wrong, ["minilm"])
    assert f"“{value}”" in str(refused.value)


def test_a_link_holds_what_was_chosen_but_not_the_text():
    chosen = MeasureRequest(text="one two", map="model", layer=2, pool="own", search="normal")
    assert "text" not in chosen.query()
    assert MeasureRequest.of({"text": "one two"} | chosen.query(), ["minilm"]) == chosen
