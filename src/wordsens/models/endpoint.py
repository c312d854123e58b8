"""Embeddings endpoints: texts sent over HTTP in the common /v1/embeddings form, vectors back."""

import io
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakSet, finalize

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import (
    InputError,
    WordsensError,
    argument,
    first_line,
    require_choice,
    require_count,
    require_extra,
    require_positive,
    shown,
    without_secrets,
)
from wordsens.models.function import STEADY, FunctionModel, require_texts
from wordsens.models.identity import joined_digest

# Answers after which a retry may help: timeouts, conflicts, too many requests, server errors.
RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
# Refusals of the texts, or of their number: fewer may be accepted.
_REFUSED = frozenset({400, 413, 422})


class EndpointError(WordsensError):
    """An endpoint gave no answer, or a wrong one. The command line exits with code 1."""


class _RefusedError(EndpointError):
    """The server refuses the texts, or this many of them."""


class _PassingError(Exception):
    """A failure after which a retry may help: the reason, and the seconds that the server asks to
    wait."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """An embeddings server, and how it is called. A request holds `model` and the texts, and
    nothing else.

    Attributes:
        url: such as https://host/v1; /v1/embeddings is added if it is missing. Redirects are not
            followed.
        model: the model's name on the server; None: the request has no such field.
        key_variable: the environment variable with the key, which is sent as a bearer token; no key
            is sent if it is not set.
        timeout: seconds for one batch of texts, retries and waits included.
        retries: the largest number of retries of a batch after temporary failures.
        backoff: seconds before the first retry, doubled for each further one; a longer Retry-After
            is obeyed.
        on_error: what happens to a text that the server refuses (it answers 400, 413 or 422 to this
            text alone): "stop" ends the run with an error that names it; with "skip" a check, a
            calibration, a comparison or an audit leaves it out, and its first line says so.

    Only the 1st, 2nd, 4th, 8th, ... wait is logged, so that a server with a rate limit causes only
    a few lines.

    Raises:
        InputError: an invalid URL, timeout, count or choice.
        MissingExtraError: httpx2 is not installed.
    """

    url: str
    model: str | None = None
    key_variable: str = "WORDSENS_API_KEY"  # no other tool's key is sent by accident
    timeout: float = 60.0
    retries: int = 4
    backoff: float = 0.5
    on_error: str = "stop"
    _waits: list[float] = field(default_factory=list[float], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_extra("endpoint", "an embeddings endpoint", "httpx2")
        try:
            parts = urlsplit(self.url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
                raise ValueError("another scheme, no host, or port 0")
        except ValueError as error:
            raise InputError(
                f"{argument('endpoint')} (={without_secrets(self.url)!r}) must be a URL such as "
                "https://host/v1"
            ) from error
        require_positive("timeout", self.timeout)
        require_count("retries", self.retries, least=0)
        require_positive("backoff", self.backoff)
        require_choice("on_error", self.on_error, ("stop", "skip"))

    @property
    def address(self) -> str:
        """The full URL.

        >>> Endpoint(url="http://localhost:8080").address
        'http://localhost:8080/v1/embeddings'
        """
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/")
        if not path.endswith("/embeddings"):
            path = f"{path.removesuffix('/v1')}/v1/embeddings"
        return urlunsplit(parts._replace(path=path, fragment=""))

    @property
    def name(self) -> str:
        """The model and the host, for tables and messages; without key and query."""
        return f"{self.model or 'the endpoint'} at {urlsplit(self.url).hostname}"

    def vectors(self, texts: list[str]) -> list[Any]:
        """The vectors of the texts, from one request, which is repeated after temporary failures.

        Raises:
            EndpointError: no correct answer within the timeout, or a refusal.
        """
        deadline = time.monotonic() + self.timeout
        for attempt in range(self.retries + 1):
            try:
                return _vectors(self._asked(texts, deadline), texts)
            except ValueError as error:
                raise EndpointError(
                    f"{self.name} gave no embeddings in JSON: {first_line(error)}"
                ) from error
            except _PassingError as failure:
                reason, wait = failure.args[0], max(failure.args[1], self.backoff * 2**attempt)
            if attempt == self.retries or time.monotonic() + wait >= deadline:
                raise EndpointError(
                    f"{self.name} {reason} ({attempt + 1} times; the next attempt is due in "
                    f"{wait:.3g} s); try later, or raise {argument('retries')} (={self.retries}) "
                    f"or {argument('timeout')} (={self.timeout:g} s)"
                )
            self._waits.append(wait)
            if len(self._waits).bit_count() == 1:
                logging.getLogger(__name__).warning(
                    f"{self.name} {reason}; asking again in {wait:.3g} s "
                    f"(wait {len(self._waits)}, {sum(self._waits):.3g} s in all)"
                )
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _asked(self, texts: list[str], deadline: float) -> bytes:
        """The body of the server's answer to one request."""
        import httpx2

        key = os.environ.get(self.key_variable)
        content = b""
        try:
            with (
                httpx2.Client(timeout=max(deadline - time.monotonic(), 1e-3)) as client,
                client.stream(
                    "POST",
                    self.address,
                    headers={"Authorization": f"Bearer {key}"} if key else {},
                    json={"input": texts} | ({"model": self.model} if self.model else {}),
                ) as response,
            ):
                # The library limits each wait for the next bytes, not their sum.
                for part in response.iter_bytes():
                    content += part
                    if time.monotonic() > deadline:
                        raise TimeoutError("timed out")
        except (httpx2.TransportError, TimeoutError) as error:
            raise _PassingError(f"gave no answer ({first_line(error)})", 0.0) from error
        if response.status_code == httpx2.codes.OK:
            return content
        reason = f"answered {response.status_code} {response.reason_phrase}"
        if response.status_code in RETRIED:
            wait = response.headers.get("Retry-After", "").strip()  # dates are not read
            raise _PassingError(reason, float(wait) if wait.isdigit() else 0.0)
        # A server may repeat the key in its message.
        said = content.replace(key.encode(), b"(the key)") if key else content
        text = f" (the text: {texts[0][:60]!r})" if len(texts) == 1 else ""
        kind = _RefusedError if response.status_code in _REFUSED else EndpointError
        raise kind(f"{self.name} {reason}: {shown(said.decode(errors='replace'))}{text}")


class EndpointModel(FunctionModel):
    """An endpoint as a model. Each text is sent once; a batch that the server refuses is sent again
    in halves.

    Every batch of vectors is written to a file in ~/.cache/wordsens as it arrives, with digests in
    place of the texts. The file is deleted at the end of a run without a failed request. After any
    other end, kill -9 included, the next run uses the vectors, if the server still gives a test
    sentence the same vector.

    Args:
        endpoint: the server.
        batch_size: texts per request.

    Raises:
        EndpointError: no correct answer within the timeout, or different answers to one text.
    """

    _of_this_run: ClassVar[WeakSet["EndpointModel"]] = WeakSet()

    def __init__(self, endpoint: Endpoint, *, batch_size: int = 32):
        super().__init__(
            endpoint.vectors, name=endpoint.name, batch_size=batch_size, error=EndpointError
        )
        self._file = (
            Path.home()
            / ".cache/wordsens"
            / (f"endpoint-{joined_digest(endpoint.address, endpoint.model)[:16]}.pt")
        )
        self._skips = endpoint.on_error == "skip"
        try:
            self._probe = self.require_steady()
        except _RefusedError:  # it may take no more than one text
            self._batch_size = 1
            self._probe = self.require_steady()
        self._known = self._read()
        self._write(self._known)
        self._of_this_run.add(self)
        self._cleanup = finalize(self, self._file.unlink, missing_ok=True)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        for reason in self._receive(listed).values():
            if self._skips:
                raise InputError(reason)
            raise EndpointError(f"{reason}{self._keep_all()}")
        return torch.stack([self._known[joined_digest(text)] for text in listed])

    def refusals(self, texts: Sequence[str]) -> dict[str, str]:
        """The texts that the server refuses, each with the server's answer; empty unless they are
        skipped."""
        return self._receive(texts) if self._skips else {}

    def _receive(self, texts: Sequence[str]) -> dict[str, str]:
        """Request the missing vectors; returns the texts that the server refuses, each with the
        server's answer."""
        missing = [text for text in dict.fromkeys(texts) if joined_digest(text) not in self._known]
        batches = [
            missing[start : start + self._batch_size]
            for start in range(0, len(missing), self._batch_size)
        ]
        refused: dict[str, str] = {}
        while batches and (self._skips or not refused):
            batch = batches.pop(0)
            try:
                rows = super().encode(batch)
                received = dict(zip(map(joined_digest, batch), rows, strict=True))
                self._write(received)
                self._known |= received
            except _RefusedError as refusal:
                if len(batch) == 1:
                    refused[batch[0]] = str(refusal)
                else:
                    batches[:0] = batch[: len(batch) // 2], batch[len(batch) // 2 :]
            except (EndpointError, KeyboardInterrupt) as error:
                error.args = (f"{str(error) or 'interrupted'}{self._keep_all()}",)
                raise
        return refused

    def _keep_all(self) -> str:
        """Leave the files of every endpoint of this run; returns a note of the number of
        vectors."""
        models = [model for model in self._of_this_run if model._known]
        for model in models:
            model._cleanup.detach()
        kept = sum(len(model._known) for model in models if model._file.exists())
        return f"; vectors kept for the next run: {kept}"

    def _write(self, vectors: Mapping[str, Tensor]) -> None:
        """Add one record to the file: the vector of the test sentence, digests, and vectors."""
        if not vectors:
            return
        content = io.BytesIO()
        rows = torch.stack(list(vectors.values()))
        for part in (self._probe.numpy(), np.array(list(vectors)), rows.numpy()):
            np.save(content, part, allow_pickle=False)
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("ab") as file:
                file.write(content.getvalue())

    def _read(self) -> dict[str, Tensor]:
        """Read and delete the vectors of an earlier run, by their texts' digests; those of a model
        that has changed since are left out."""
        vectors: dict[str, Tensor] = {}
        # No file, its end, or a record that was cut off, of which numpy raises many kinds.
        with suppress(Exception), self._file.open("rb") as file:
            while True:
                probe, digests, rows = (np.load(file, allow_pickle=False) for _ in range(3))
                moved = torch.from_numpy(probe) - self._probe
                if moved.norm() <= STEADY * self._probe.norm():
                    vectors |= zip(digests.tolist(), torch.from_numpy(rows), strict=True)
        self._file.unlink(missing_ok=True)
        return vectors


def _vectors(content: bytes, texts: list[str]) -> list[Any]:
    """The vectors in an answer, in the order of the texts; ValueError says what is wrong with
    it."""
    try:
        placed = [
            (str(each.get("index", place)), each["embedding"])
            for place, each in enumerate(json.loads(content)["data"])
        ]
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            "its answer has no list `data` of objects with an `embedding`; give the address of its "
            "OpenAI-compatible API, which usually ends in /v1"
        ) from error
    vectors, expected = dict(placed), [str(place) for place in range(len(texts))]
    if len(placed) != len(texts) or {*vectors} != {*expected}:
        raise ValueError(
            f"{len(placed)} vectors for {len(texts)} texts; their `index` must be 0 to "
            f"{len(texts) - 1}, each once, and is {[place for place, _ in placed]}"[:200]
        )
    return [_vector(vectors[place], text) for place, text in zip(expected, texts, strict=True)]


def _vector(vector: Any, text: str) -> Any:
    """The numbers of one text; some servers put its vector into a list."""
    vectors = vector if isinstance(vector, list) and list in map(type, vector) else [vector]
    if len(vectors) > 1 or not vectors[0]:
        raise ValueError(
            f"its answer for the text {text[:60]!r} must be one vector, and is {str(vector)[:60]}; "
            "if that is one per token, let the server pool them, such as --pooling mean of "
            "llama.cpp"
        )
    return vectors[0]
