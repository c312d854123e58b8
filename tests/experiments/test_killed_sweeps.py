"""Sweeps killed with SIGKILL, the parent and its workers, end with the records of an undisturbed run."""

from pathlib import Path

import pytest
from benchmarks import sweeps


@pytest.mark.parametrize("set_up", [sweeps._nothing, sweeps._local])
def test_killed_and_resumed(tmp_path, set_up):
    spec = tmp_path / "killed.yaml"
    spec.write_text(sweeps.SPEC.format(last=11, work=1, pause=0.1))
    sweeps._finish(spec, tmp_path / "whole", "pause=0.0")
    with set_up(Path(tmp_path)) as (options, workers):
        told = sweeps._killed(spec, tmp_path / "killed", options, workers, kills=2, longest=0.1)
    assert told["parent"] + told["worker"] == 2
    assert (told["worker"] > 0) == (set_up is sweeps._local)
    found = sweeps.results(tmp_path / "killed")
    assert len(found) == 12
    assert found == sweeps.results(tmp_path / "whole")
