"""Two audits of the same texts: paired differences with intervals over texts."""

import pytest

from wordsens.audit.comparison import audit_changes
from wordsens.audit.text import AuditedText, AuditedWord


def text(source, *words):
    measured = tuple(
        AuditedWord(word=word, tokens=1, place=at / 9, sensitivity=value, removal=value / 2)
        for at, (word, value) in enumerate(words)
    )
    return AuditedText(
        source=source, tokens=9, words=10, words_lost=0, negations_lost=0, measured=measured, evaluations=1
    )


def test_the_change_is_that_of_the_words_both_measured():
    before = [text(str(at), ("not", 0.2 + at / 100), ("film", 0.5), ("old", 9.0)) for at in range(6)]
    after = [text(str(at), ("not", 0.3 + at / 100), ("film", 0.5 + (-1) ** at / 10)) for at in range(6)]
    found = {(one.kind, one.measure): one for one in audit_changes(list(zip(before, after, strict=True)))}
    assert set(found) == {(kind, name) for kind in ("negation", "content word") for name in ("sensitivity", "removal")}
    grew = found["negation", "sensitivity"]
    assert (grew.before, grew.after, grew.texts, grew.certain) == (pytest.approx(0.225), pytest.approx(0.325), 6, True)
    assert grew.difference.value == pytest.approx(0.1)
    assert not found["content word", "removal"].certain


def test_few_texts_are_never_certain():
    pairs = [(text("a", ("not", 0.1)), text("a", ("not", 0.9)))] * 4
    assert not any(change.certain for change in audit_changes(pairs))
