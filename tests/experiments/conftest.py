"""Cells are measured with bounds that are quickly found: how tight they are belongs to tests/certificates."""

import pytest


@pytest.fixture(autouse=True)
def _cheap(loose_bounds):
    pass
