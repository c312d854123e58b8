"""The tiny models of the tests of texts, and the command line in the test's own process."""

from tests.cli.conftest import validator, wordsens  # noqa: F401
from tests.models.conftest import tiny_bert  # noqa: F401
