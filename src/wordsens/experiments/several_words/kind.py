"""The kind of cell that moves several words at once."""

from wordsens.experiments.kinds import CellKind
from wordsens.experiments.several_words.cell import describe_several_words, measure_several_words
from wordsens.experiments.several_words.record import SeveralWordsRecord
from wordsens.experiments.several_words.spec import SeveralWordsCell
from wordsens.experiments.several_words.summary import summarise_several_words

KIND = CellKind(
    name="several-words",
    folder="several-words-records",
    cell_type=SeveralWordsCell,
    record_type=SeveralWordsRecord,
    measure=measure_several_words,
    described=describe_several_words,
    summarise=summarise_several_words,
)
