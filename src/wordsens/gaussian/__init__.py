"""Gaussian matrices as operators: kept whole, or sampled on demand with exactly the same law."""

from wordsens.gaussian.contract import GaussianMatrix as GaussianMatrix
from wordsens.gaussian.dense import DENSE_BYTES as DENSE_BYTES
from wordsens.gaussian.dense import DenseGaussian as DenseGaussian
from wordsens.gaussian.dense import dense_bytes as dense_bytes
from wordsens.gaussian.on_demand import ON_DEMAND_BYTES as ON_DEMAND_BYTES
from wordsens.gaussian.on_demand import OnDemandGaussian as OnDemandGaussian
