"""Records of similarities in tables: AUC, how far words move the features, S beside them."""

import json
from collections.abc import Sequence

from wordsens.experiments.sensitivity.findings import text_title
from wordsens.experiments.similarity.claims import all_claims
from wordsens.experiments.similarity.record import SimilarityRecord
from wordsens.experiments.similarity.series import Place, auc_of, places, s_of
from wordsens.experiments.similarity.spec import CHECK, SWAPS
from wordsens.experiments.summary import Section, Summary, Value
from wordsens.statistics.mean import Estimate


def summarise_similarity(records: Sequence[SimilarityRecord]) -> Summary:
    """A row a map and length of swaps, and of the pairs of check, there kind by kind too; sentences about them."""
    swaps, check = places(records, SWAPS), places(records, CHECK)
    sections = (
        Section(
            "Swaps of one word",
            ("map", "texts", "n", "AUC", "moved by flip", "by synonym", "S", "passages", "draws"),
            tuple(
                (one.title, text_title(one.text), one.n, *_numbers(one), one.records[0].opposites, len(one.records))
                for one in swaps
            ),
        ),
        Section(
            "Pairs of check",
            ("map", "texts", "n", "AUC", "from", "to", "beside synonyms", "moved by flip", "by synonym", "S", "draws"),
            tuple(_check_row(one) for one in check),
        ),
        *_kinds(swaps, check),
    )
    return Summary(
        tuple(one for one in sections if one.rows),
        "AUC: the chance that a flipped pair's features are less alike (cosine) than a pair's that means the same, "
        "ties half; .5 is a coin. The same is a one-word synonym in swaps, a paraphrase in check. n counts tokens. "
        "Means over draws of weights and passages with standard errors; in check the pairs are the same in each draw, "
        "and from ... to is a 95 % interval over the pairs. Moved: median of the relative change of the features. S: "
        "attained by a short search of a few words of one text.",
        tuple(all_claims(swaps, check)),
    )


def _numbers(place: Place) -> tuple[Value, ...]:
    return (
        place.estimate(auc_of),
        place.estimate(lambda one: one.moved_flip),
        place.estimate(lambda one: one.moved_synonym),
        place.estimate(s_of),
    )


def _check_row(place: Place) -> tuple[Value, ...]:
    auc, flip, synonym, s = _numbers(place)
    first = place.records[0]
    low, high = (_mean(place.estimate(column)) for column in (lambda one: one.auc_low, lambda one: one.auc_high))
    with_synonyms = place.estimate(lambda one: one.auc_synonym)
    draws = len(place.records)
    return (place.title, first.length, place.n, auc, low, high, with_synonyms, flip, synonym, s, draws)


def _mean(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.mean


def _kinds(swaps: Sequence[Place], check: Sequence[Place]) -> list[Section]:
    """Tables with a column a kind: swaps against synonyms, check against paraphrases and against one-word synonyms."""
    told = (
        ("Swaps kind by kind: AUC against synonyms", swaps, "auc_by_kind"),
        ("Check kind by kind: AUC against paraphrases", check, "auc_by_kind"),
        ("Check kind by kind: AUC against one-word synonyms", check, "auc_synonym_by_kind"),
    )
    sections = []
    for title, own, name in told:
        named = [kind for place in own for one in place.records for kind in json.loads(one.kinds or "[]")]
        kinds = sorted(dict.fromkeys(named))
        rows = tuple(
            (
                one.title,
                one.records[0].length or text_title(one.text),
                one.n,
                *(_of_kind(one, kind, name) for kind in kinds),
            )
            for one in own
        )
        sections.append(Section(title, ("map", "texts", "n", *kinds), rows))
    return sections


def _of_kind(place: Place, kind: str, name: str) -> Estimate | None:
    def column(record: SimilarityRecord) -> float | None:
        values = getattr(record, name)
        told = json.loads(record.kinds or "[]")
        return None if values is None or kind not in told else values[told.index(kind)]

    return place.estimate(column)
