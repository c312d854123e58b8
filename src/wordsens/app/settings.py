"""The settings of the page: where it is served, for whom, with which models, and its limits."""

import ipaddress
from dataclasses import dataclass
from typing import Annotated

from wordsens.errors import InputError, require_count, require_positive

LEAST_TOKEN = 12
"""Letters of a token that is not soon guessed."""


@dataclass(frozen=True, kw_only=True)
class AppSettings:
    """The settings of a server, each with its help as an option of `wordsens app`; past a limit the
    page says so.

    Raises:
        InputError: a wrong number, no model, or an address that others can reach without a token.
    """

    host: Annotated[
        str, "The address to serve on; another than this machine's own needs --token."
    ] = "127.0.0.1"
    port: Annotated[int, "0 for any that is free."] = 8765
    token: str | None = None
    model: Annotated[
        list[str] | None,
        "A model that visitors can choose: minilm (the default), a folder or a name; may be "
        "repeated.",
    ] = None
    workers: Annotated[int, "Processes that measure; each holds the models it uses."] = 2
    max_words: Annotated[int, "Words of a text."] = 300
    max_seconds: Annotated[float, "Seconds of one measurement."] = 180.0
    max_waiting: Annotated[int, "Measurements that wait for a free worker, of all visitors."] = 12
    memory: Annotated[int, "Memory of a worker, in MiB."] = 4096

    def __post_init__(self) -> None:
        require_count("workers", self.workers)
        require_count("port", self.port, least=0, most=65535)
        require_count("max_words", self.max_words, least=2)
        require_positive("max_seconds", self.max_seconds)
        require_count("max_waiting", self.max_waiting)
        require_count(
            "memory",
            self.memory,
            least=1024,
            remedy="a worker with a small model needs about that much",
        )
        if not all(self.models):
            raise InputError("`model` names no model; leave it out for minilm")
        if self.token is not None and len(self.token) < LEAST_TOKEN:
            raise InputError(
                f"`token` has {len(self.token)} characters; give at least {LEAST_TOKEN}"
            )
        if self.token is None and not self.loopback:
            raise InputError(
                f"`host` (={self.host!r}) lets others reach the page, who could then measure texts "
                "on this machine; "
                "give --token, or leave --host out"
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
