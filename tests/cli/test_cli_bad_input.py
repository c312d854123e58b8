"""Wrong input: one clear line on stderr, nothing on stdout, exit code 2."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "binary.txt").write_bytes(b"\x00\xff\x01")
    (tmp_path / "one-word.csv").write_text("text\nhello\n")
    pq.write_table(pa.table({"review": ["a good film"]}), tmp_path / "reviews.parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["measure", "hello", "--map", "rf"],
            "the text has one word; word sensitivity compares words",
        ),
        (["measure", ""], "has no token: it is empty or only blanks"),
        (
            ["measure", "--file", "binary.txt"],
            "the file 'binary.txt' is not text in the encoding 'utf-8'",
        ),
        (
            ["measure", "--file", "none.txt"],
            "the file 'none.txt' cannot be read: No such file or directory",
        ),
        (["measure", "--texts", "empty.txt"], "the file 'empty.txt' is empty"),
        (["measure", "--texts", "none.csv"], "there is no file or folder 'none.csv'"),
        (
            ["measure", "--texts", "reviews.parquet"],
            "the file 'reviews.parquet' has no column 'text'; its columns are 'review'; name one "
            "with --text-column",
        ),
        (
            ["measure", "--texts", "one-word.csv"],
            "--texts (='one-word.csv') has no text of two words or more",
        ),
        (["measure", "a b", "--encoder", "no/such-model"], "no model 'no/such-model'"),
        (
            ["measure", "a b", "--layer", "9"],
            "--layer (=9) is not a layer of minilm, which has layers 0",
        ),
        (["measure", "a b", "--radius", "nan"], "--radius (=nan) must be a positive finite number"),
        (
            ["measure", "a b", "--word", "2"],
            "--word has 2, but the text has 2 words; indices run from 0 to 1",
        ),
        (
            ["measure", "a b", "--sample", "1", "--word", "1"],
            "--word and --sample both choose the words",
        ),
        (["measure", "a b", "--map", "rff"], "did you mean 'rf'?"),
        (["measure", "a b", "--device", "quantum"], "--device (='quantum') is not available here"),
        (["measure"], "give exactly one of TEXT, --file and --texts"),
        (
            ["measure", "word " * 600],
            "shorten it, or pass --max-words 510 or less",
        ),
        (["measure", "a b", "--mpa", "rf"], "No such option: --mpa (Possible options: --map"),
        (["measure", "a b", "--seed", "x"], "Invalid value for '--seed'"),
        (["measure", "a", "b"], "unexpected extra argument"),
        (["meassure", "a b"], "No such command 'meassure'. Did you mean 'measure'?"),
        (
            ["paper", "--scale", "quik"],
            "--scale (='quik') must be one of quick, laptop, full; did you mean 'quick'?",
        ),
        (
            ["paper", "sensitivty"],
            "must be one of sensitivity, generalization, attention, correlations, "
            "several-words, symmetry, depth, temperature, "
            "similarity, control, all; did you mean 'sensitivity'?",
        ),
        (
            ["paper", "control", "--task", "sentimnt"],
            "--task (='sentimnt') must be one of synthetic, sentiment; did you mean 'sentiment'?",
        ),
        (["paper", "depth", "--task", "sentiment"], "goes with control; add that, or drop it"),
        (
            ["paper", "control", "--task", "sentiment"],
            "needs 500 texts of n = 64 words, and there are 50; give --texts with more",
        ),
        (
            ["paper", "--out", "empty.txt"],
            "--out (='empty.txt') cannot be used as a folder for results",
        ),
    ],
)
def test_wrong_input_is_one_line_and_code_2(wordsens, folder, arguments, line):
    before = sorted(folder.iterdir())
    run = wordsens(*arguments)
    assert run.code == 2
    assert run.out == ""
    assert run.err.startswith("wordsens: ")
    assert run.err.count("\n") == 1
    assert line in run.err
    assert sorted(folder.iterdir()) == before


ENDINGS = {
    "quits": "import sys; sys.exit()",
    "says_why": "import sys; sys.exit('API_KEY is not set')",
    "parses": "import argparse; argparse.ArgumentParser().parse_args(['--corpus'])",
    "interrupts": "raise KeyboardInterrupt",
    "cancels": "import asyncio; raise asyncio.CancelledError",
    "loses_its_pipe": "raise BrokenPipeError",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("where", ["import", "call"])
@pytest.mark.parametrize(
    "command", [["check", "--require", "recall >= 0"], ["explain", "a b", "a c"]]
)
def test_a_function_that_ends_the_process_passes_no_gate(
    wordsens, folder, monkeypatch, command, where, ending
):
    module, code = f"{ending}_at_{where}", ENDINGS[ending]
    at_import, at_call = (code, "pass") if where == "import" else ("", code)
    (folder / f"{module}.py").write_text(f"{at_import}\ndef encode(texts):\n    {at_call}\n")
    monkeypatch.syspath_prepend(folder)
    run = wordsens(*command, "--encode", f"{module}:encode")
    assert (run.code, run.out) == (130 if ending == "interrupts" else 2, "")
    assert run.err.splitlines()[-1].startswith("wordsens: ")
    assert ("API_KEY is not set" in run.err) == (ending == "says_why")


MISTAKES = {
    "stops_typer": "import typer; raise typer.Exit(0)",
    "finds_no_file": "open('no-such-file')",
    "mixes_shapes": "return rows @ torch.ones(3, 3)",
    "calls_itself": "return self.forward(rows)",
}


@pytest.mark.parametrize("ending", [*sorted(set(ENDINGS) - {"interrupts"}), *MISTAKES])
def test_a_map_that_ends_or_fails_is_named_in_one_line(wordsens, folder, monkeypatch, ending):
    mistake = {**ENDINGS, **MISTAKES}[ending]
    code = (
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, rows):\n        "
        f"{mistake}\n"
    )
    (folder / f"net_{ending}.py").write_text(code)
    monkeypatch.syspath_prepend(folder)
    run = wordsens("measure", "I love her much", "--map", f"net_{ending}:Net")
    assert (run.code, run.out) == (1, "")
    assert f"net_{ending}.py, line 4, in forward: " in run.err
    assert run.err.splitlines()[-1].startswith("wordsens: ")


def test_a_gradient_that_stops_typer_is_a_failure(wordsens, folder, monkeypatch):
    (folder / "hard_stop.py").write_text(
        "import torch, typer\n"
        "class Stop(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, rows):\n        return rows * 1\n"
        "    @staticmethod\n    def backward(ctx, slope):\n        raise typer.Exit(0)\n"
        "def stop(rows):\n    return Stop.apply(rows)\n"
    )
    monkeypatch.syspath_prepend(folder)
    run = wordsens("measure", "I love her much", "--map", "hard_stop:stop")
    assert run.code == 1
    assert "hard_stop.py" in run.err
