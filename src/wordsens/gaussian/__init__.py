"""Gaussian matrices as operators: in memory, or sampled on demand with exactly the same law."""

from wordsens.gaussian.matrix import DENSE_BYTES as DENSE_BYTES
from wordsens.gaussian.matrix import ON_DEMAND_BYTES as ON_DEMAND_BYTES
from wordsens.gaussian.matrix import DenseGaussian as DenseGaussian
from wordsens.gaussian.matrix import GaussianMatrix as GaussianMatrix
from wordsens.gaussian.matrix import OnDemandGaussian as OnDemandGaussian
from wordsens.gaussian.matrix import dense_bytes as dense_bytes
