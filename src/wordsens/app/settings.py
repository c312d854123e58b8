"""The settings of the page: where it is served, for whom, with which models, and its limits."""

import ipaddress
from dataclasses import dataclass, field

from wordsens.errors import InputError, require_count, require_positive

LEAST_TOKEN = 12
"""Letters of a token that is not soon guessed."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a visitor's work; past each the page says so.

    Attributes:
        words: of a text.
        seconds: of one measurement.
        waiting: measurements that wait for a free worker, of all visitors.
        memory_mb: of a worker process.
    """

    words: int = 300
    seconds: float = 180.0
    waiting: int = 12
    memory_mb: int = 4096

    def __post_init__(self) -> None:
        require_count("max_words", self.words, least=2)
        require_positive("max_seconds", self.seconds)
        require_count("max_waiting", self.waiting)
        require_count("memory", self.memory_mb, least=1024, remedy="a worker with a small model needs about that much")


@dataclass(frozen=True, kw_only=True)
class AppSettings:
    """The settings of a server.

    Attributes:
        host, port: the address; port 0 for any that is free.
        token: the word that lets a visitor in; None only on this machine's own address.
        models: the names that a visitor can choose from, the first chosen at first.
        workers: processes that measure.
        limits: of a visitor's work.

    Raises:
        InputError: a wrong number, no model, or an address that others can reach without a token.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    models: tuple[str, ...] = ("minilm",)
    workers: int = 2
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        require_count("workers", self.workers)
        if require_count("port", self.port, least=0) > 65535:
            raise InputError(f"`port` (={self.port}) must be at most 65535")
        if not self.models or not all(self.models):
            raise InputError("`model` names no model; leave it out for minilm")
        if self.token is not None and len(self.token) < LEAST_TOKEN:
            raise InputError(f"`token` has {len(self.token)} characters; give at least {LEAST_TOKEN}")
        if self.token is None and not self.loopback:
            raise InputError(
                f"`host` (={self.host!r}) lets others reach the page, who could then measure texts on this machine; "
                "give --token, or leave --host out"
            )

    @property
    def loopback(self) -> bool:
        """True where only this machine reaches the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
