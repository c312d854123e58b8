"""Embeddings endpoints: texts sent over HTTP in the common /v1/embeddings form, vectors back."""

import hashlib
import io
import json
import logging
import os
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import (
    InputError,
    WordsensError,
    first_line,
    require_count,
    require_extra,
    require_positive,
    without_secrets,
)
from wordsens.files import replace_file
from wordsens.models.black_box import PROBES
from wordsens.models.function import STEADY, FunctionModel, require_texts

KEY_VARIABLE = "WORDSENS_API_KEY"
"""The environment variable that holds the key, unless another is named: no other tool's key is sent
by accident."""

_LOG = logging.getLogger(__name__)
_PATH = "/embeddings"
# Answers that may be others a moment later: timeouts, conflicts, too many requests, and servers in
# trouble.
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
# Refusals of the texts that were sent, or of so many: fewer may be taken.
_TOO_MUCH = frozenset({400, 413, 422})
_SHOWN = 200


class EndpointError(WordsensError):
    """An endpoint gave no answer, or a wrong one. The command line exits with code 1."""


class _RefusedError(EndpointError):
    """The server refuses the texts, or so many of them."""


class _PassingError(Exception):
    """A failure after which asking again may help; `wait` is what the server asked for, in
    seconds."""

    def __init__(self, reason: str, wait: float = 0.0):
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A server of embeddings, and the way to ask it. One request holds `model` and the texts, and
    nothing else.

    Attributes:
        url: such as https://host/v1; /v1/embeddings is completed where it is missing. Redirects are
            not followed.
        model: the model's name on the server; None to leave it out.
        key_variable: the environment variable with the key, sent as a bearer token; no key where it
            is not set.
        timeout: seconds for one batch of texts, retries and waits included.
        retries: how often a batch is asked for again after a passing failure.
        backoff: seconds before the first retry, doubled for each further one; a longer Retry-After
            is obeyed.

    It logs that it waits, and for what: at the first wait, the second, the fourth, the eighth and
    so on, which makes a few lines of a server that limits the rate all along.

    Raises:
        InputError: a URL, timeout or count that cannot be.
        MissingExtraError: httpx2 is not installed.
    """

    url: str
    model: str | None = None
    key_variable: str = KEY_VARIABLE
    timeout: float = 60.0
    retries: int = 4
    backoff: float = 0.5
    _waits: list[float] = field(default_factory=list[float], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # brackets of no IPv6 address, a port that is no number
            right = False
        if not right:
            raise InputError(
                f"`endpoint` (={without_secrets(self.url)!r}) must be a URL such as https://host/v1"
            )
        require_positive("timeout", self.timeout)
        require_count("retries", self.retries, least=0)
        require_positive("backoff", self.backoff)
        require_extra("endpoint", "an embeddings endpoint", "httpx2")

    @property
    def address(self) -> str:
        """The full URL.

        >>> Endpoint(url="http://localhost:8080").address
        'http://localhost:8080/v1/embeddings'
        """
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/")
        if not path.endswith(_PATH):
            path += _PATH if path.endswith("/v1") else f"/v1{_PATH}"
        return urlunsplit(parts._replace(path=path, fragment=""))

    @property
    def name(self) -> str:
        """For tables and messages: the model and the host, no key and no query."""
        host = urlsplit(self.url).hostname
        return f"{self.model} at {host}" if self.model else f"the endpoint at {host}"

    def vectors(self, texts: list[str]) -> list[Any]:
        """The vectors of the texts, asked for in one request and again after passing failures; in
        halves where the server refuses so many.

        Raises:
            EndpointError: no right answer within the timeout, or a text that is refused, with it.
        """
        try:
            return self._of_one_request(texts)
        except _RefusedError as refusal:
            if len(texts) == 1:
                raise EndpointError(f"{refusal}; the text was {texts[0][:60]!r}") from refusal
            half = len(texts) // 2
            return self.vectors(texts[:half]) + self.vectors(texts[half:])

    def _of_one_request(self, texts: list[str]) -> list[Any]:
        deadline = time.monotonic() + self.timeout
        for attempt in range(self.retries + 1):
            try:
                return _vectors(self._asked(texts, deadline), texts)
            except _PassingError as failure:
                wait = max(self.backoff * 2**attempt, failure.wait)
                if attempt == self.retries:
                    raise EndpointError(
                        f"{self.name} {failure}, {attempt + 1} times; try later or raise retries"
                    ) from None
                if time.monotonic() + wait >= deadline:
                    raise EndpointError(
                        f"{self.name} {failure}; no time is left of {self.timeout:g} s"
                    ) from None
                self._waits.append(wait)
                if len(self._waits).bit_count() == 1:
                    so_far = f"wait {len(self._waits)}, {sum(self._waits):.3g} s in all"
                    _LOG.warning(
                        "%s %s; asking again in %.3g s (%s)", self.name, failure, wait, so_far
                    )
                time.sleep(wait)
            except ValueError as error:
                raise EndpointError(f"{self.name} gave no embeddings: {error}") from error
        raise AssertionError("the last attempt returns or raises")

    def _asked(self, texts: list[str], deadline: float) -> bytes:
        """The body of the server's answer to one request."""
        import httpx2

        key = os.environ.get(self.key_variable)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        body = {"input": texts} if self.model is None else {"model": self.model, "input": texts}
        left = max(deadline - time.monotonic(), 1e-3)

        def post() -> Any:
            with httpx2.Client(timeout=left, headers=headers) as client:
                return client.post(self.address, json=body)

        try:
            response = _within(left, post)
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise EndpointError(f"{self.name} did not answer within {self.timeout:g} s") from error
        except httpx2.TransportError as error:
            raise _PassingError(f"cannot be reached ({first_line(error)})") from error
        except httpx2.InvalidURL as error:
            raise InputError(
                f"`endpoint` (={without_secrets(self.url)!r}) is no URL: {first_line(error)}"
            ) from error
        if response.status_code == httpx2.codes.OK:
            return response.content
        reason = f"answered {response.status_code} {response.reason_phrase}".rstrip()
        if response.status_code in _PASSING:
            wait = response.headers.get("Retry-After", "")  # dates are not read
            raise _PassingError(reason, float(wait) if wait.strip().isdigit() else 0.0)
        said = " ".join(response.text.split())[:_SHOWN]
        # A server may repeat the key in its complaint.
        shown = said.replace(key, "(the key)") if key else said
        kind = _RefusedError if response.status_code in _TOO_MUCH else EndpointError
        raise kind(f"{self.name} {reason}{': ' if shown else ''}{shown}")


def endpoint_model(endpoint: Endpoint, *, batch_size: int = 32) -> FunctionModel:
    """The endpoint as a model, after a look at whether it answers, and answers alike.

    Raises:
        EndpointError: no right answer within the timeout, or another in a second call.
    """
    model = FunctionModel(
        endpoint.vectors, name=endpoint.name, batch_size=batch_size, error=EndpointError
    )
    model.require_steady()
    return model


class ResumableEndpoint(FunctionModel):
    """An endpoint whose vectors outlive a run that fails: the next run takes them from a file in
    ~/.cache/wordsens.

    The file holds digests of the texts, not the texts. It is written where a request fails or is
    interrupted, for every endpoint of the run, and it is gone once it is read. What it holds counts
    only while the server gives a sentence of ours the same vector as then. Each vector is taken
    once, since two requests for one text may get two vectors.

    Raises:
        EndpointError: no right answer within the timeout, or another in a second call.
    """

    _of_this_run: ClassVar[weakref.WeakSet["ResumableEndpoint"]] = weakref.WeakSet()

    def __init__(self, endpoint: Endpoint, *, batch_size: int = 32):
        super().__init__(
            endpoint.vectors, name=endpoint.name, batch_size=batch_size, error=EndpointError
        )
        self.require_steady()
        server = hashlib.sha256(
            json.dumps([endpoint.address, endpoint.model]).encode()
        ).hexdigest()[:16]
        self._file = Path.home() / ".cache" / "wordsens" / f"endpoint-{server}.pt"
        self._probe = super().encode(PROBES[:1])
        self._received: list[tuple[str, Tensor]] = []
        self._earlier = self._read()
        self._of_this_run.add(self)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        batches = (
            listed[start : start + self._batch_size]
            for start in range(0, len(listed), self._batch_size)
        )
        return torch.cat([self._encoded_batch(batch) for batch in batches])

    def _encoded_batch(self, texts: list[str]) -> Float[Tensor, "m d"]:
        digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        rows = {
            at: self._earlier[digest].pop(0)
            for at, digest in enumerate(digests)
            if self._earlier.get(digest)
        }
        self._received += [(digests[at], row) for at, row in rows.items()]
        if missing := [at for at in range(len(texts)) if at not in rows]:
            try:
                answer = super().encode([texts[at] for at in missing])
            except EndpointError as error:
                raise EndpointError(f"{error}; {self._keep_all()}") from error
            except KeyboardInterrupt:
                self._keep_all()
                raise
            rows |= zip(missing, answer, strict=True)
            self._received += [(digests[at], rows[at]) for at in missing]
        return torch.stack([rows[at] for at in range(len(texts))])

    def _keep_all(self) -> str:
        """Write what every endpoint of this run gave, and say how much that is."""
        count = 0
        for model in self._of_this_run:
            vectors = model._received + [
                (digest, row) for digest, rows in model._earlier.items() for row in rows
            ]
            if not vectors:
                continue
            content = io.BytesIO()
            torch.save((model._probe, vectors), content)
            with suppress(OSError):
                model._file.parent.mkdir(parents=True, exist_ok=True)
                replace_file(model._file, content.getvalue())
                count += len(vectors)
        return (
            f"{count} vectors are kept, and the same command goes on from there"
            if count
            else "no vector is kept"
        )

    def _read(self) -> dict[str, list[Tensor]]:
        """The vectors of an earlier run by their texts' digests, where the model is still the
        same."""
        earlier: dict[str, list[Tensor]] = {}
        try:
            probe, vectors = torch.load(self._file, weights_only=True)
        except (
            OSError,
            ValueError,
            RuntimeError,
            EOFError,
            UnpicklingError,
        ):  # none, or one that is damaged
            return earlier
        self._file.unlink(missing_ok=True)
        if (
            probe.shape == self._probe.shape
            and (probe - self._probe).norm() <= STEADY * probe.norm()
        ):
            for digest, vector in vectors:
                earlier.setdefault(digest, []).append(vector)
        return earlier


def _within(seconds: float, work: Callable[[], Any]) -> Any:
    """The result of the work, or TimeoutError: a server that sends a byte now and then does not
    hold us.

    The HTTP library limits each wait for the next byte; work that is late is left behind in its
    thread.
    """
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # raised again below, where somebody waits
            outcome.set_exception(error)

    Thread(target=run, daemon=True).start()
    return outcome.result(timeout=seconds)


def _vectors(content: bytes, texts: list[str]) -> list[Any]:
    """The vectors in an answer, in the texts' order; ValueError says what is wrong with it."""
    try:
        answer: Any = json.loads(content)
    except ValueError as error:
        raise ValueError(f"its answer is not JSON ({first_line(error)})") from error
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(
        isinstance(each, dict) and "embedding" in each for each in data
    ):
        raise ValueError(
            "its answer has no list `data` of objects with an `embedding`; give the address of its "
            "OpenAI-compatible API, which usually ends in /v1"
        )
    if len(data) != len(texts):
        raise ValueError(f"{len(data)} vectors for {len(texts)} texts")
    places = [str(each.get("index", at)) for at, each in enumerate(data)]
    if sorted(places) != sorted(map(str, range(len(texts)))):
        raise ValueError(
            f"the `index` of its vectors must be 0 to {len(texts) - 1}, each once; got "
            f"[{', '.join(places)}]"[:_SHOWN]
        )
    vectors = [data[places.index(str(at))]["embedding"] for at in range(len(texts))]
    return [_vector(vector, text) for vector, text in zip(vectors, texts, strict=True)]


def _vector(vector: Any, text: str) -> list[Any]:
    """The numbers of one text; some servers put the one vector into a list."""
    if not isinstance(vector, list) or not vector:
        raise ValueError(
            f"its answer for the text {text[:60]!r} is no vector but {vector!r}"[:_SHOWN]
        )
    if not isinstance(vector[0], list):
        return vector
    if len(vector) > 1:
        raise ValueError(
            f"it gives {len(vector)} vectors for the text {text[:60]!r}, one per token; have the "
            "server pool them, such as --pooling mean of llama.cpp"
        )
    return vector[0]
