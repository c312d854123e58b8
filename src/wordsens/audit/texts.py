"""The texts of an audit: those that can be measured, and those that are left out, with the reason."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from wordsens.audit.categories import counted
from wordsens.text.document import Document
from wordsens.text.whole_words import reading_words


@dataclass
class AuditTexts:
    """The texts of a dataset.

    Attributes:
        documents: what is measured, each text once.
        counts: how often each word occurs in the data, in lower case.
        copies: texts that are equal to an earlier one.
        left_out: where each text stands that cannot be measured, and why: a rule, not a failure.
    """

    documents: list[Document] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    copies: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def leave_out_empty(self, source: str) -> None:
        """Note an empty text as left out."""
        self.left_out.append((source, "it is empty"))

    def take(self, documents: Iterable[Document]) -> None:
        """Add documents: to those that are measured, to the copies or to those that are left out."""
        seen: set[str] = set()
        for document in documents:
            words = reading_words(document.text)
            self.counts.update(counted(words))
            reason = _reason(words)
            if reason is not None:
                self.left_out.append((document.source, reason))
            elif document.text in seen:
                self.copies += 1
            else:
                seen.add(document.text)
                self.documents.append(document)


def _reason(words: list[str]) -> str | None:
    if len(words) < 2:
        return f"it has {len(words)} word{'' if len(words) == 1 else 's'}, and an audit compares words"
    return None
