"""Specs that would fill the memory, or run for hours before a word: one line, and at once."""

import json
import time

import pytest

from wordsens.errors import InputError
from wordsens.experiments.dry_run.cell import DryRunCell, DryRunRecord
from wordsens.experiments.grid.sweep import MOST_GRIDS
from wordsens.experiments.grid.sweep_file import load_sweep, parse_sweep
from wordsens.experiments.store.store import RecordStore
from wordsens.files import MOST_BYTES

DRY = "name: a\nkind: dry-run\n"


def refusal(call, seconds=2.0):
    begin = time.process_time()
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 2000
    assert time.process_time() - begin < seconds
    return message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{DRY}seeds: 1000000000\ngrids: [{{draw: 0}}]", "s.yaml:3: `seeds.constrained-int` (=1000000000)"),
        (f"{DRY}include: []", "s.yaml:3: `include` is an empty list; name a sweep, or leave it out"),
        ("include: []", "s.yaml:1: `include` is an empty list"),
        ("include: dry-run\nkind: [a]", "s.yaml:1: cells of several kinds (dry-run, ['a']); a sweep has one kind"),
        (
            f"{DRY}grids: [{{draw: 0, zip: rf}}]\noverride: {{draw: 1}}",
            "s.yaml:3: `zip` (='rf') must map keys to lists",
        ),
        ("include: dry-run\nkind: null", "s.yaml:1: cells of several kinds (dry-run, None); a sweep has one kind"),
        (f"{DRY}grids: [{{draw: {{range: [0, 1{'0' * 4000}]}}}}]", "s.yaml:3: `draw` has the range [0, 1000"),
        (f"{DRY}grids: [{{draw: 1{'0' * 30}}}]", "s.yaml:3: `draw` (=1000000000000000000000000000000) must be a whole"),
        (f"{DRY}grids: [{{seed: [0, -1{'0' * 30}]}}]", "must be a whole number of 64 bits"),
        (f"{DRY}grids: [{{draw: 1{'0' * 5000}}}]", "s.yaml:3: '1000"),
        (f"{DRY}grids: [{{draw: 2024-13-45}}]", "s.yaml:3: '2024-13-45' is no timestamp; put a string into quotes"),
        (f"{DRY}grids: [{{draw: !!bool x}}]", "s.yaml:3: 'x' is no bool"),
        (f"{DRY}grids: [{{draw: 0x_}}]", "s.yaml:3: '0x_' is no int"),
        (f'{DRY}grids: [{{device: "\\ud800"}}]', "its character 0 ('\\ud800') is half of a pair"),
        (
            DRY + "grids:\n" + "".join(f"- {{draw: {{range: [0, 99999]}}, seed: {seed}}}\n" for seed in range(50)),
            "a: 5,000,000 cells; at most 200,000: take fewer values an axis, or several sweeps",
        ),
        (DRY + "grids: [{zip: [" + ", ".join(f"{{k{at}: {{range: [0, 199999]}}}}" for at in range(50)) + "]}]", "k0"),
        (DRY + "grids:\n" + "- {draw: 0}\n" * (MOST_GRIDS + 1), "`grids`"),
        (
            "name: a\ngrids: [{map: rf, n: 1000000000, d: 4, text: orthogonal}]",
            "`n` times `d` (=1000000000 times 4) must be at most 134,217,728",
        ),
        (
            "name: a\ngrids: [{map: drf, n: 4, d: 4, text: orthogonal, depth: 1000000000}]",
            "s.yaml:2: `depth` (=1000000000) must be at most 10,000",
        ),
    ],
)
def test_a_spec_that_is_too_much(text, message):
    parse_sweep(f"{DRY}grids: [{{draw: 0}}]", where="warm.yaml").cells()
    assert message in refusal(lambda: parse_sweep(text, where="s.yaml").cells(), 5.0)


def test_files_that_each_include_the_next_twice(tmp_path):
    for at in range(16):
        (tmp_path / f"{at}.yaml").write_text(f"include: [{at + 1}.yaml, {at + 1}.yaml]\n", encoding="utf-8")
    (tmp_path / "16.yaml").write_text(f"{DRY}grids: [{{draw: 0}}]\n", encoding="utf-8")
    message = refusal(lambda: load_sweep(tmp_path / "0.yaml"), 5.0)
    assert "more than 100 files are included; include each once" in message
    # The same texts in a line are no bomb.
    for at in range(16):
        (tmp_path / f"{at}.yaml").write_text(f"include: {at + 1}.yaml\n", encoding="utf-8")
    assert len(load_sweep(tmp_path / "0.yaml").cells()) == 1


def test_a_file_that_is_too_long(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(f"{DRY}grids: [{{draw: 0}}]\n{'#' * MOST_BYTES}\n", encoding="utf-8")
    assert f"has more than {MOST_BYTES:,} bytes" in refusal(lambda: load_sweep(path))


def test_places_of_many_included_grids_are_found_soon(tmp_path):
    grids = "".join(f"- {{draw: {at}, seed: 1}}\n" for at in range(MOST_GRIDS))
    (tmp_path / "many.yaml").write_text(f"{DRY}grids:\n{grids}", encoding="utf-8")
    (tmp_path / "a.yaml").write_text("include: many.yaml\noverride: {work: -1}\n", encoding="utf-8")
    message = refusal(lambda: load_sweep(tmp_path / "a.yaml").cells(), 20.0)
    assert message.startswith(f"{tmp_path / 'a.yaml'}:2: `work` (=-1)")


def test_the_largest_numbers_are_kept():
    cell = DryRunCell.parse({"draw": 2**63 - 1, "seed": -(2**63)})
    assert json.loads(cell.identity())["draw"] == 2**63 - 1
    assert "must be a whole number of 64 bits" in refusal(lambda: DryRunCell.parse({"draw": 2**63}))


def test_the_folder_of_a_run_is_not_the_folder_of_its_records(tmp_path):
    (tmp_path / "dry-run-records").mkdir()
    for read_only in (False, True):
        message = refusal(lambda read_only=read_only: RecordStore(tmp_path, DryRunRecord, read_only=read_only))
        assert f"give {str(tmp_path / 'dry-run-records')!r}" in message
    assert RecordStore(tmp_path / "dry-run-records", DryRunRecord).read() == []


@pytest.mark.parametrize("override", ["draw=D: name: " + "x" * 5000, "y" * 5000])
def test_a_long_override_is_not_repeated_whole(override):
    spec = f"{DRY}grids: [{{draw: [0]}}]\n"
    message = refusal(lambda: parse_sweep(spec, where="s.yaml", overrides=[override]))
    assert "..." in message
    assert len(message) < 500
