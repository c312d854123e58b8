"""Endpoints: what is sent, what comes back, and every way in which a server can fail."""

import logging
import socket
import threading
from contextlib import suppress

import pytest

import wordsens as ws
from tests.models.server import Late, good, serving, vector
from wordsens.errors import InputError
from wordsens.evaluation.pairs import readable
from wordsens.models.endpoint import Endpoint, EndpointError
from wordsens.models.load import as_model
from wordsens.text.pairs import Pair

TEXTS = ["The door is open.", "The door is not open.", "Shut it."]


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch, tmp_path):
    """No proxy and no key reaches the requests, and no vectors are left in the user's folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.delenv("WORDSENS_API_KEY", raising=False)


def asked(url, texts=TEXTS, **options):
    """The vectors from the server."""
    return Endpoint(url=url, **{"timeout": 5.0, "backoff": 0.01, **options}).vectors(texts)


def test_texts_go_out_and_vectors_come_back():
    with serving(good) as (url, script):
        model = as_model(Endpoint(url=url, model="tiny"), batch_size=2)
        script.asked.clear()
        assert model.encode(TEXTS).tolist() == [vector(text) for text in TEXTS]
    assert [body for _, _, body in script.asked] == [
        {"model": "tiny", "input": TEXTS[:2]},
        {"model": "tiny", "input": TEXTS[2:]},
    ]
    assert (model.name, model.no_rows is None) == ("tiny at 127.0.0.1", False)


@pytest.mark.parametrize("given", ["", "/", "/v1", "/v1/", "/v1/embeddings"])
def test_the_path_is_completed(given):
    with serving(good) as (url, script):
        asked(url + given)
    assert script.asked[0][0] == "/v1/embeddings"


def test_the_key_comes_from_the_environment_and_nothing_else_is_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "somebody else's")
    with serving(good) as (url, script):
        asked(url)
        monkeypatch.setenv("WORDSENS_API_KEY", "secret")
        asked(url)
        monkeypatch.setenv("MY_KEY", "mine")
        asked(url, key_variable="MY_KEY")
    (_, none, body), (_, usual, _), (_, named, _) = script.asked
    assert ("Authorization" in none, usual["Authorization"], named["Authorization"]) == (
        False,
        "Bearer secret",
        "Bearer mine",
    )
    assert body == {"input": TEXTS}
    assert {name.lower() for name in none} <= {
        "host",
        "accept",
        "accept-encoding",
        "connection",
        "user-agent",
        "content-length",
        "content-type",
    }


def test_a_refusal_is_not_asked_for_again_and_the_key_is_not_repeated(monkeypatch):
    monkeypatch.setenv("WORDSENS_API_KEY", "secret-key")
    with serving((401, b'{"error": "wrong key:\n secret-key"}', {})) as (url, script):
        with pytest.raises(EndpointError) as caught:
            asked(url)
        assert len(script.asked) == 1
    assert (
        str(caught.value) == "the endpoint at 127.0.0.1 answered 401 Unauthorized: "
        """'{"error": "wrong key:\\n (the key)"}'"""
    )


def test_a_server_that_does_not_answer_in_time():
    late = Late()
    message = r"gave no answer \(timed out\) .* `timeout` \(=0\.3 s\)"
    with serving(late) as (url, script):
        with pytest.raises(EndpointError, match=message):
            asked(url, timeout=0.3)
        late.given_up.set()
        assert len(script.asked) == 1


@pytest.mark.parametrize("code", [400, 413, 422])
@pytest.mark.parametrize("most", [1, 3, 7])
def test_a_batch_that_is_too_large_is_sent_in_smaller_ones(code, most):
    def at_most(texts):
        return good(texts) if len(texts) <= most else (code, b"too many", {})

    texts = [f"text {'e' * number}" for number in range(13)]
    with serving(at_most) as (url, script):
        model = as_model(Endpoint(url=url), batch_size=13)
        script.asked.clear()
        assert model.encode(texts).tolist() == [vector(text) for text in texts]
        sent = [body["input"] for _, _, body in script.asked]
    assert [text for batch in sent if len(batch) <= most for text in batch] == texts


@pytest.mark.parametrize("place", range(8))
def test_a_text_that_is_refused_is_named(place):
    texts = [f"text {number}" for number in range(8)]
    texts.insert(place, f"a bell {place}")
    message = f"400 .*no bells' .*: 'a bell {place}'.; v"
    with serving(without_bells) as (url, _), pytest.raises(EndpointError, match=message):
        as_model(Endpoint(url=url)).encode(texts)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[::-1],
        lambda data: [{**each, "index": str(each["index"])} for each in data],
        lambda data: [{**each, "embedding": [each["embedding"]]} for each in data],
        lambda data: [{**each, "embedding": [*map(str, each["embedding"])]} for each in data],
    ],
)
def test_vectors_that_other_servers_write_otherwise_are_taken(change):
    with serving(lambda texts: {"data": change(good(texts)["data"])}) as (url, _):
        encoded = as_model(Endpoint(url=url)).encode(TEXTS)
    assert encoded.tolist() == [vector(text) for text in TEXTS]


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(EndpointError, match=r"gave no answer \(.*\) \(2 times"):
        asked(url, retries=1)


def _with_index(*places):
    return lambda texts: {
        "data": [
            {"index": at, "embedding": vector(text)} for at, text in zip(places, texts, strict=True)
        ]
    }


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda texts: b"<html>not found</html>",
            "gave no embeddings in JSON: Expecting value",
        ),
        (
            lambda texts: {"error": "no such model"},
            "its answer has no list `data` of objects with an `embedding`; give the address",
        ),
        (
            lambda texts: {"embeddings": [vector(text) for text in texts]},
            "which usually ends in /v1",
        ),
        (
            lambda texts: {"data": [{"embedding": [vector(text)] * 2} for text in texts]},
            f"the text {TEXTS[0]!r} must be one vector, and is [[17.0, 1.0, 2.0], [17.0, ",
        ),
        (
            lambda texts: {"data": [{"embedding": None} for text in texts]},
            f"its answer for the text {TEXTS[0]!r} must be one vector, and is None",
        ),
        (
            lambda texts: {"data": good(texts)["data"][1:]},
            "gave no embeddings in JSON: 2 vectors for 3 texts",
        ),
        (
            _with_index(0, 0, 1),
            "their `index` must be 0 to 2, each once, and is ['0', '0', '1']",
        ),
    ],
)
def test_a_wrong_answer_is_told_in_one_line(answer, message):
    with serving(answer) as (url, script):
        with pytest.raises(EndpointError) as caught:
            asked(url)
        assert len(script.asked) == 1
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, InputError)


def test_a_number_that_is_none_is_told_with_its_text():
    """JSON knows no NaN, but many servers write it."""
    broken = {"data": [{"embedding": vector(TEXTS[0])}, {"embedding": [float("nan"), 1.0, 2.0]}]}
    with serving(good, good, good, broken) as (url, _):
        model = as_model(Endpoint(url=url))
        with pytest.raises(EndpointError, match="not finite for the text 'The door is not"):
            model.encode(TEXTS[:2])


def test_every_second_request_refused_is_answered_and_the_waiting_is_said(caplog):
    limited = [(429, b"", {}), good]
    with serving(*limited * 8) as (url, _), caplog.at_level(logging.WARNING, "wordsens"):
        endpoint = Endpoint(url=url, backoff=0.01)
        for _ in range(8):
            assert endpoint.vectors(TEXTS) == [vector(text) for text in TEXTS]
    said = [record.getMessage() for record in caplog.records]
    assert [message.partition("(")[2] for message in said] == [
        "wait 1, 0.01 s in all)",
        "wait 2, 0.02 s in all)",
        "wait 4, 0.04 s in all)",
        "wait 8, 0.08 s in all)",
    ]
    assert all(
        "answered 429 Too Many Requests; asking again in 0.01 s" in message for message in said
    )


def test_a_limit_that_does_not_end_and_a_wait_that_is_too_long_are_one_line(monkeypatch):
    waits = []
    monkeypatch.setattr("wordsens.models.endpoint.time.sleep", waits.append)
    with serving((429, b"", {})) as (url, script):
        with pytest.raises(
            EndpointError, match=r"answered 429 Too Many Requests \(4 times.*; try later"
        ):
            asked(url, retries=3)
        assert (len(script.asked), waits) == (4, [0.01, 0.02, 0.04])
    with serving((429, b"", {"Retry-After": "600"})) as (url, script):
        with pytest.raises(
            EndpointError, match=r"\(1 times; the next attempt is due in 600 s\).*\(=5 s\)$"
        ):
            asked(url)
        assert (len(script.asked), waits) == (1, [0.01, 0.02, 0.04])


def without_bells(texts):
    """A server that refuses texts with a bell, and every batch of more than four texts."""
    bad = len(texts) > 4 or any("bell" in text for text in texts)
    return (400, b"no bells", {}) if bad else good(texts)


def test_texts_that_are_skipped_are_named_and_no_text_is_asked_for_twice():
    texts = [f"text {number} {'bell' * (number in (3, 9, 10))}" for number in range(13)]
    with serving(without_bells) as (url, script):
        model = as_model(Endpoint(url=url, on_error="skip"), batch_size=4)
        script.asked.clear()
        refused = model.refusals(texts)
        assert list(refused) == [texts[3], texts[9], texts[10]]
        assert refused[texts[3]] == (
            "the endpoint at 127.0.0.1 answered 400 Bad Request: 'no bells' (the text: "
            f"{texts[3]!r})"
        )
        taken = [text for text in texts if text not in refused]
        assert model.encode(taken).tolist() == [vector(text) for text in taken]
        sent = [body["input"] for _, _, body in script.asked]
        answered = [text for batch in sent if without_bells(batch) == good(batch) for text in batch]
        assert answered == taken
        with pytest.raises(ws.InputError, match=r"\(the text: 'text 9 bell'\)"):
            model.encode([texts[9]])


def test_texts_are_refused_only_where_they_are_skipped_and_an_error_stops_at_once():
    texts = ["bell", *(f"text {number}" for number in range(40))]
    with serving(without_bells) as (url, script):
        model = as_model(Endpoint(url=url), batch_size=4)
        assert model.refusals(texts) == {}
        script.asked.clear()
        with pytest.raises(EndpointError, match="the text: 'bell'"):
            model.encode(texts)
        assert len(script.asked) <= 4


def test_a_pair_is_left_out_whichever_of_its_texts_is_refused():
    pairs = [
        Pair("k", first, second, False)
        for first, second in (("a bell", "b"), ("c", "d bell"), ("e", "f"))
    ]
    with serving(without_bells) as (url, _):
        counted, changes = readable(as_model(Endpoint(url=url, on_error="skip")), pairs)
    assert counted == pairs[2:]
    assert changes[0].startswith("2 pairs left out, with a text that the model cannot read")


@pytest.mark.parametrize("code", sorted({408, 409, 425, 429, 500, 502, 503, 504}))
def test_these_answers_are_asked_for_again(code):
    with serving((code, b"", {}), (code, b"", {}), good) as (url, script):
        assert asked(url) == [vector(text) for text in TEXTS]
        assert len(script.asked) == 3


@pytest.mark.parametrize("code", [401, 404, 501, 505])
def test_other_answers_are_final(code):
    with serving((code, b"", {}), good) as (url, script):
        with pytest.raises(EndpointError, match=str(code)):
            asked(url)
        assert len(script.asked) == 1


@pytest.mark.parametrize("url", ["localhost", "ftp://host", "http://", "http://host:0", "http://["])
def test_an_address_or_choice_that_cannot_be_is_wrong_input(url):
    with pytest.raises(InputError, match="must be a URL such as"):
        Endpoint(url=url)
    with pytest.raises(InputError, match=r"`on_error` .* must be one of stop, skip"):
        Endpoint(url="http://host", on_error="ignore")


def test_a_body_that_drips_is_left_at_the_deadline():
    """Each byte comes in time, all of them together do not."""
    over = threading.Event()

    def drip(server):
        connection, _ = server.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        with suppress(OSError):
            while not over.wait(0.05):
                connection.sendall(b" ")
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        with pytest.raises(EndpointError, match=r"gave no answer \(timed out\)"):
            asked(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.4)
        over.set()
        thread.join()


def test_vectors_survive_two_runs_that_end_early():
    with serving(good) as (url, script):
        first = as_model(Endpoint(url=url), batch_size=1)
        first.encode(TEXTS)
        first._cleanup.detach()  # as after kill -9
        second = as_model(Endpoint(url=url), batch_size=1)
        second._cleanup.detach()
        del first, second
        script.asked.clear()
        third = as_model(Endpoint(url=url), batch_size=1)
        third.encode(TEXTS)
        sent = [text for _, _, body in script.asked for text in body["input"]]
        assert not {*TEXTS} & {*sent}
        del third
    with serving(good) as (url, script):
        fourth = as_model(Endpoint(url=url), batch_size=1)
        fourth.encode(TEXTS)
        assert {*TEXTS} <= {text for _, _, body in script.asked for text in body["input"]}
