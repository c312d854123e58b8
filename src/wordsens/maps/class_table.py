"""Tables by the class of a map: what one kind of map can do that others cannot."""

from collections.abc import Mapping
from typing import TypeVar

from wordsens.maps.contract import FeatureMap

Row = TypeVar("Row")


def map_row(table: Mapping[type[FeatureMap], Row], phi: FeatureMap) -> Row | None:
    """The row of the map's class, or of the nearest class that it derives from; None where there is none.

    >>> from wordsens.maps.dense.features import DeepRandomFeatures, RandomFeatures
    >>> map_row({DeepRandomFeatures: "dense"}, RandomFeatures(2, 2))
    'dense'
    """
    return next((table[kind] for kind in type(phi).__mro__ if kind in table), None)
