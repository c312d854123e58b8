"""The settings of the page: where it is served, for whom, with which models, and its limits."""

import ipaddress
from dataclasses import dataclass

from wordsens.errors import InputError, argument, require_count, require_extra, require_positive

# Letters of a token that is not soon guessed.
LEAST_TOKEN = 12


@dataclass(frozen=True, kw_only=True)
class AppSettings:
    """The settings of a server; past a limit the page says so.

    Attributes:
        host: the address to listen on; any other than this machine's own needs a token.
        port: 0 picks a free one.
        token: what visitors must know.
        model: the models that visitors can choose; None for minilm.
        workers: processes that measure.
        max_words: of a text.
        max_seconds: of one measurement.
        max_waiting: measurements that wait for a free worker, of all visitors.
        memory: of a worker, in MiB.

    Raises:
        InputError: a wrong number, no model, or an address that others can reach without a token.
        MissingExtraError: NiceGUI is not installed.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    model: list[str] | None = None
    workers: int = 2
    max_words: int = 300
    max_seconds: float = 180.0
    max_waiting: int = 12
    memory: int = 4096

    def __post_init__(self) -> None:
        require_extra("app", "the page", "nicegui")
        require_count("workers", self.workers)
        require_count("port", self.port, least=0, most=65535)
        require_count("max_words", self.max_words, least=2)
        require_positive("max_seconds", self.max_seconds)
        require_count("max_waiting", self.max_waiting)
        remedy = "a worker with a small model needs about that much"
        require_count("memory", self.memory, least=1024, remedy=remedy)
        if not all(self.models):
            raise InputError(f"{argument('model')} names no model; leave it out for minilm")
        if self.token is not None and len(self.token) < LEAST_TOKEN:
            raise InputError(
                f"{argument('token')} has {len(self.token)} characters; give at least {LEAST_TOKEN}"
            )
        if self.token is None and not self.loopback:
            raise InputError(
                f"{argument('host')} (={self.host!r}) lets others reach the page, who could then "
                f"measure texts on this machine; give {argument('token')}, or leave "
                f"{argument('host')} out"
            )

    def require_words(self, text: str) -> None:
        """InputError, in plain words, for a text without words or with too many."""
        count = len(text.split())
        if not 1 <= count <= self.max_words:
            raise InputError(
                f"A text here has {count:,} words; give 1 to {self.max_words:,}. "
                "The wordsens command takes longer texts."
            )

    @property
    def models(self) -> list[str]:
        """The names that a visitor can choose from, the first chosen at first."""
        return list(dict.fromkeys(self.model or ["minilm"]))

    @property
    def loopback(self) -> bool:
        """True where only this machine reaches the address."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
