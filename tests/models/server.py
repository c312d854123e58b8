"""A small embeddings server for tests: it answers as it is told, and keeps what it was asked."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def vector(text):
    """What the server's model gives a text."""
    return [float(len(text)), 1.0, float(text.count("e"))]


def good(texts):
    """A right answer."""
    return {
        "object": "list",
        "data": [{"index": at, "embedding": vector(text)} for at, text in enumerate(texts)],
    }


class Script:
    """The server's answers in turn, the last one for ever; each is (status, body, headers) or a
    function from the texts to such an answer or to a body.

    Attributes:
        asked: (path, headers, body) of every request.
    """

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def next(self):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def serving(*answers):
    """The address of a running server, and its script."""
    script = Script(*answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.asked.append((self.path, dict(self.headers), body))
            answer = script.next()
            if callable(answer):
                answer = answer(body["input"])
            status, content, headers = answer if isinstance(answer, tuple) else (200, answer, {})
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    # A late answer finds nobody who listens: no traceback into whichever test runs then.
    server.handle_error = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Late:
    """A right answer that comes only once nobody waits for it: after `given_up` is set."""

    def __init__(self):
        self.given_up = threading.Event()

    def __call__(self, texts):
        self.given_up.wait(60)
        return good(texts)
