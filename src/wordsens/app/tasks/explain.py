"""A score, or a text's vector, explained by its words."""

from dataclasses import asdict
from typing import Any

from wordsens.app.work.worker import Desk
from wordsens.evaluation.explain import ExplainPlan
from wordsens.evaluation.explain import explain as explained


def explain(desk: Desk, model: str, text: str, other: str) -> dict[str, Any]:
    """The sentences, and every word with its effects."""
    desk.tick()
    found = explained(model, text, other.strip() or None, plan=ExplainPlan(tries=2))
    words = [{**asdict(word), "shade": found.shade(word)} for word in found.words]
    return {"sentences": found.sentences(), "texts": list(found.texts), "words": words, "score": found.score}
