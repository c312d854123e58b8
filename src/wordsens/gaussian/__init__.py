"""Gaussian matrices as operators: in memory, or sampled on demand with exactly the same law."""

from wordsens.gaussian.matrix import DenseGaussian as DenseGaussian
from wordsens.gaussian.matrix import GaussianMatrix as GaussianMatrix
from wordsens.gaussian.matrix import OnDemandGaussian as OnDemandGaussian
from wordsens.gaussian.matrix import gaussian_matrices as gaussian_matrices
