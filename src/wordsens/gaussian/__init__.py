"""Gaussian matrices as operators: kept whole, or sampled on demand with exactly the same law."""

from wordsens.gaussian.contract import GaussianMatrix
from wordsens.gaussian.dense import DENSE_BYTES, DenseGaussian, dense_bytes
from wordsens.gaussian.on_demand import ON_DEMAND_BYTES, OnDemandGaussian

__all__ = [
    "DENSE_BYTES",
    "ON_DEMAND_BYTES",
    "DenseGaussian",
    "GaussianMatrix",
    "OnDemandGaussian",
    "dense_bytes",
]
