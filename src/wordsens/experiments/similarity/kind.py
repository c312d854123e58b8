"""The kind of cell that compares similarities of flipped and of kept meanings."""

from wordsens.experiments.kinds import CellKind
from wordsens.experiments.similarity.cell import describe_similarity, measure_similarity
from wordsens.experiments.similarity.record import SimilarityRecord
from wordsens.experiments.similarity.spec import SimilarityCell
from wordsens.experiments.similarity.summary import summarise_similarity

KIND = CellKind(
    name="similarity",
    folder="similarity-records",
    cell_type=SimilarityCell,
    record_type=SimilarityRecord,
    measure=measure_similarity,
    described=describe_similarity,
    sharing=SimilarityCell.layers_of,
    summarise=summarise_similarity,
)
