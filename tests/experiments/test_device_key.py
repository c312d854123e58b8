"""The kind of device belongs to a cell's identity."""

import json

import pytest
import torch
from tests.experiments.small_cells import CELLS

from wordsens.cli.executor_options import ExecutorRequest
from wordsens.cli.running import RunRequest, require_devices
from wordsens.errors import InputError
from wordsens.experiments.generalization.cell import KIND as GENERALIZATION
from wordsens.experiments.grid.sweep_file import on_device, parse_sweep
from wordsens.experiments.kinds import kind_named
from wordsens.experiments.sensitivity.cell import KIND as SENSITIVITY

SWEEP = "name: a\ncommon: {map: raf, n: 3, d: 4, text: gaussian, steps: 2}\ngrids: [{draw: [0, 1]}]\n"


def cell(kind, **changes):
    return kind_named(kind).cell_type.parse({**CELLS[kind], **changes})


@pytest.mark.parametrize("kind", ["sensitivity", "generalization"])
def test_its_kind_changes_the_hash_and_its_number_does_not(kind):
    names = {device: cell(kind, device=device).content_hash() for device in ("cpu", "cuda", "cuda:1", "mps")}
    assert names["cpu"] == cell(kind).content_hash()
    assert names["cuda"] == names["cuda:1"]
    assert len(set(names.values())) == 3
    assert json.loads(cell(kind, device="cuda:1").identity())["device"] == "cuda"


def test_a_dry_run_computes_on_none():
    assert cell("dry-run", device="cuda").content_hash() == cell("dry-run").content_hash()


@pytest.mark.slow_cases("audit")
@pytest.mark.parametrize("kind", CELLS)
def test_the_record_says_where_it_was_computed(kind):
    kinds = kind_named(kind)
    failed = kinds.failed(cell(kind, device="cuda:1"), "no luck")
    assert failed.device == "cuda:1"
    done = kinds.attempt(cell(kind))
    assert done.device == "cpu"
    if kind != "dry-run":
        assert done.threads == torch.get_num_threads()


@pytest.mark.parametrize("device", ["", "cu da", "CUDA", "cuda:", "[cpu, cuda]"])
def test_a_name_that_is_none(device):
    with pytest.raises(InputError, match=r"`device` \(=.*\) must be a name of torch's: cpu, cuda, cuda:1, mps, ...$"):
        on_device(parse_sweep(SWEEP, where="a.yaml"), device).cells()


def test_a_mistake_in_the_spec_has_its_line():
    with pytest.raises(InputError, match=r"^a\.yaml:2: .*`device` \(='gpu 1'\)"):
        parse_sweep(SWEEP.replace("steps: 2", "device: gpu 1"), where="a.yaml").cells()


def test_a_device_that_this_machine_lacks_is_refused_unless_others_compute():
    cells = [cell("sensitivity", device="cuda:99")]
    with pytest.raises(InputError, match=r"`device` \(='cuda:99'\) is not available here"):
        require_devices(cells, RunRequest())
    with pytest.raises(InputError, match="not available here"):
        require_devices(cells, RunRequest(executor=ExecutorRequest(workers=2)))
    require_devices(cells, RunRequest(executor=ExecutorRequest(scheduler="tcp://host:8786")))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_agrees_with_the_cpu_but_for_rounding():
    here, there = cell("sensitivity", steps=0), cell("sensitivity", steps=0, device="cuda")
    assert SENSITIVITY.run(there).value == pytest.approx(SENSITIVITY.run(here).value, rel=1e-6)
    assert GENERALIZATION.attempt(cell("generalization", device="cuda")).done
