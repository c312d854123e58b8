"""Places of a study of similarities: the draws of one map on pairs of one kind and length."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wordsens.experiments.sensitivity.findings import text_title
from wordsens.experiments.similarity.record import SimilarityRecord
from wordsens.experiments.similarity.spec import SWAPS
from wordsens.maps.registry import map_title
from wordsens.statistics.mean import Estimate

Column = Callable[[SimilarityRecord], float | None]


@dataclass(frozen=True)
class Place:
    """The draws of one map on pairs of one kind and length, by draw."""

    map: str
    text: str
    n: int
    records: tuple[SimilarityRecord, ...]

    @property
    def title(self) -> str:
        """The features in words: "RF", "minilm, layer 3 pooled"."""
        return features_title(self.records[0])

    @property
    def learned(self) -> bool:
        """True of a layer of a trained model; the other maps are random."""
        return self.records[0].model_layer is not None

    def by_draw(self, column: Column) -> dict[int, float]:
        """The column's value in each draw that has one."""
        return {one.draw: value for one in self.records if (value := column(one)) is not None}

    def estimate(self, column: Column) -> Estimate | None:
        """The mean over the draws; None where none has a value."""
        values = list(self.by_draw(column).values())
        return Estimate.of(values) if values else None


def features_title(record: SimilarityRecord) -> str:
    """The features in words."""
    if record.model_layer is None:
        return map_title(record.map)
    name = record.map.removesuffix(f" layer {record.model_layer}").rstrip("/").rpartition("/")[2]
    return f"{name} layer {record.model_layer}, {record.pool} pooled"


def places(records: Sequence[SimilarityRecord], pairs: str) -> list[Place]:
    """The finished records of swaps, or of check: map by map, by length."""
    groups: dict[tuple[str, str, int], list[SimilarityRecord]] = defaultdict(list)
    for record in records:
        if record.done and record.pairs == pairs:
            groups[features_title(record), record.text, record.n].append(record)
    found = [Place(own[0].map, text, n, tuple(own)) for (_, text, n), own in groups.items()]
    order = {key: at for at, key in enumerate(dict.fromkeys((one.text, one.title) for one in found))}
    return sorted(found, key=lambda one: (order[one.text, one.title], one.n))


def pairs_title(place: Place) -> str:
    """The pairs in words."""
    first = place.records[0]
    return f"swaps in {text_title(first.text)}" if first.pairs == SWAPS else f"pairs of check, {first.length}s"


def auc_of(record: SimilarityRecord) -> float | None:
    """The AUC of a record."""
    return record.value


def s_of(record: SimilarityRecord) -> float | None:
    """S of a record."""
    return record.sensitivity
