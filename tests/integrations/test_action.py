"""The GitHub Action: its check step, run as the runner would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import wordsens as ws

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def run_check(folder, **inputs):
    """The exit code of the check step and what it wrote to the summary and to its outputs."""
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "check")
    given = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()} | inputs
    summary, output = folder / "summary", folder / "output"
    environment = {
        **os.environ,
        **{
            name: given[value.split("inputs.")[1].rstrip(" }")]
            for name, value in step["env"].items()
        },
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return run, summary.read_text() if summary.exists() else "", output.read_text()


@pytest.mark.parametrize(
    "path",
    ["action.yml", "examples/gate.yml", "docs/how-to/gate.md", "CITATION.cff", "CHANGELOG.md"],
)
def test_what_names_a_version_names_this_one(path):
    named = r"wordsens\[minilm\]==|wordsens/wordsens@v|^version: |\A# Changelog\n\n## "
    text = (ROOT / path).read_text(encoding="utf-8")
    assert set(re.findall(rf"(?:{named})([\d.]+)", text, re.MULTILINE)) == {ws.__version__}


@pytest.fixture
def pairs(tmp_path):
    """A file of pairs beside the step."""
    rows = [
        ("switch", "Turn the alarm on.", "Turn the alarm off.", False),
        ("switch", "Lock the outer door.", "Unlock the outer door.", False),
        ("same", "Turn the alarm on.", "Please turn the alarm on.", True),
    ]
    ws.write_pairs(ws.read_pairs(rows), tmp_path / "pairs.csv")
    return "--pairs pairs.csv --threshold .5"


def test_a_failed_requirement_fails_the_step_and_is_in_the_summary(tmp_path, pairs):
    requirements = "switch.false_hits <= .1\nrecall >= .5\n"
    run, summary, output = run_check(
        tmp_path, model="minilm", requirements=requirements, arguments=pairs
    )
    assert run.returncode == 3, run.stderr
    assert "wordsens check: FAILED" in summary and "| switch | 2 |" in summary
    assert f"markdown={tmp_path}/wordsens.md" in output


def test_without_requirements_it_passes(tmp_path, pairs):
    run, summary, _ = run_check(tmp_path, model="minilm", arguments=pairs)
    assert (run.returncode, "| switch | 2 |" in summary) == (0, True), run.stderr


def test_no_script_holds_an_expression():
    """What a caller writes reaches the shell by the environment: in a script it would be run."""
    assert not [step["name"] for step in ACTION["runs"]["steps"] if "${{" in step.get("run", "")]
