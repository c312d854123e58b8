"""Small networks trained with their word sensitivity held, raised or lowered, and what comes of
it."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from wordsens.display.numbers import plural
from wordsens.display.view import Finding
from wordsens.errors import InputError, argument, require_choice
from wordsens.models.embedding import load_encoder
from wordsens.studies.control.cell import (
    ALONG,
    FLIPPED,
    HOLD,
    STRENGTHS,
    TASK_TITLES,
    ControlCell,
    measure,
)
from wordsens.sweeps.study import (
    BARS,
    INTERVALS,
    Preset,
    Study,
    Tables,
    changes,
    means,
    require_alike,
    tally,
    text_title,
)
from wordsens.sweeps.texts import SENTIMENT, Embedded, ShippedText, available, documents

# The tasks of `wordsens paper control --task`.
TASKS = ("synthetic", SENTIMENT)

# Of fewer labelled texts, less than 100 are held out: an accuracy is then uncertain by about .1.
LEAST_TEXTS = 500

# Stacks of softmax attention: alone, with residual connections, with LayerNorm, with both, and a
# transformer.
STACKS: tuple[dict[str, bool], ...] = (
    {},
    {"residual": True},
    {"norm": True},
    {"residual": True, "norm": True},
    {"residual": True, "norm": True, "mlp": True},
)

_LARGE: dict[str, Any] = {
    "n": [8, 16, 32, 64, 128, 256],
    "controlled": 32,
    "targets": [0.125, 0.25, 0.5, 1.0, 2.0],
    "depths": ([32, 128], 6),
    "layers": ["dense", "softmax", "relu"],
    "held": ["dense", "softmax"],
    "others": [name for name in STRENGTHS if name != HOLD],
    "stacks": STACKS,
    "along": ["dense", "softmax", "relu"],
}

# Draws, steps; n of the tasks against the length; n of the controls, S to hold; n of the stacks
# and their layers; networks along n, those that are controlled, the other controls, the stacks;
# networks that are measured along their training.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "draws": 5,
        "steps": 150,
        "n": [8, 32],
        "controlled": 16,
        "targets": [0.25, 1.0],
        "depths": ([16], 3),
        "layers": ["dense", "softmax"],
        "held": ["softmax"],
        "others": ["none", "lower", "raise"],
        "stacks": (STACKS[0], STACKS[-1]),
        "along": ["softmax"],
    },
    "laptop": {"draws": 5, "steps": 300, **_LARGE},
    "full": {"draws": 20, "steps": 600, **_LARGE},
}

# Of real texts: draws, their words, how many are taken, S to hold, the steps of the training.
# Batch, rate and steps were chosen by the accuracy on validation texts, before any held-out text
# was looked at.
_REVIEWS: dict[str, Any] = {
    "n": 128,
    "training": 4096,
    "steps": {"dense": 1000, "softmax": 150},
}
REAL: dict[str, dict[str, Any]] = {
    "quick": {
        "draws": 3,
        "n": 64,
        "training": 1000,
        "targets": [0.25],
        "steps": {"dense": 300, "softmax": 100},
    },
    "laptop": {"draws": 3, "targets": [0.25], **_REVIEWS},
    "full": {"draws": 10, "targets": [0.125, 0.25, 0.5, 1.0], **_REVIEWS},
}


def preset(
    scale: str, source: Embedded, seed: int, labels: str | None, *, task: str = TASKS[0]
) -> Preset:
    """Networks on one-word and majority tasks against n, under controls, by layer, along training;
    with the task "sentiment", networks on the labels of real texts."""
    if require_choice("task", task, TASKS) == SENTIMENT:
        return _on_reviews(scale, source), []
    size, d = PRESETS[scale], 32
    common: dict[str, Any] = {"draw": list(range(size["draws"])), "steps": size["steps"]}
    tasks = {**common, "task": ["one-word", "majority"], "d": d}
    at = {**tasks, "layer": size["held"], "n": size["controlled"]}
    held, followed = (
        {"control": HOLD, "target": size["targets"]},
        {"along": True, "control": ["none", "pairs"]},
    )
    lengths, layers = size["depths"]
    stack = {**common, "task": "one-word", "n": lengths, "d": d, "layers": layers, "by_layer": True}
    stacks = size["stacks"]
    grids = [
        {**tasks, "layer": size["layers"], "n": size["n"]},
        {**at, **held},
        {**at, "control": size["others"]},
        *({**stack, "steps": 0, **options} for options in stacks),
        *({**stack, **options} for options in (stacks[0], stacks[-1])),
        {**at, "layer": size["along"], **followed},
    ]
    unread = f"the texts are not read: they are for {argument('task', SENTIMENT)}"
    return grids, [] if isinstance(source, ShippedText) else [unread]


def _on_reviews(scale: str, source: Embedded) -> list[dict[str, Any]]:
    """Both networks on the sentiment of real texts, without a control and with S held."""
    size, most = REAL[scale], load_encoder(source.encoder).dimension
    if None in {text.label for text in documents(source, labelled=True)}:
        raise InputError(
            "the task 'sentiment' needs a label for each text, and one has none; name their column "
            f"with {argument('label_column')}"
        )
    found = available(source, size["n"])
    if found < LEAST_TEXTS:
        raise InputError(
            f"the task 'sentiment' needs {LEAST_TEXTS} texts of n = {size['n']} words, and there "
            f"are {found}; give {argument('texts')} with more"
        )
    keys: dict[str, Any] = {
        "task": "texts",
        "text": source.model_dump(mode="json"),
        "n": size["n"],
        "d": min(128, most),
        "training": size["training"],
        "batch": 64,
        "rate": 0.003,
        "shuffle": True,
        "draw": list(range(size["draws"])),
    }
    held = {"control": HOLD, "target": size["targets"]}
    networks = [{**keys, "layer": layer, "steps": steps} for layer, steps in size["steps"].items()]
    return [{**network, **control} for network in networks for control in ({}, held)]


_SIZE = ["network", "task", "n", "d", "steps"]
_SETTING = [*_SIZE, "control", "strength"]
_MAIN, _LAYERS, _ALONG = "Accuracy and S", "S behind the layers", "Along the training"
_FLIPS, _EDITED = "Labels that one changed word flips", list(FLIPPED.values())
_TIMES, _CHANGE = "factor of S", "change of accuracy"
_FIRST = ["network", "task", "n", "control", "accuracy", "S", "died", _TIMES, _CHANGE]
_SHARES = {title: name for title, name in ALONG.items() if title != "S"}


def tables(records: pd.DataFrame) -> Tables:
    """Every setting, with what its control changes; S behind the layers; looks at a training."""
    layers, looks, others = parts(records)
    columns = {
        "S": "sensitivity",
        "accuracy": "accuracy",
        "robust": "robust",
        "median word": "median_word",
    }
    main = means(others, _SETTING, columns, ("accuracy", "robust"))
    main["died"] = others.groupby(_SETTING, dropna=False, sort=False)["died"].sum().to_numpy()
    # The networks without control, once for every control that they are compared with.
    without = others["control"] == "none"
    settings = others.loc[~without, _SETTING].drop_duplicates()
    base = others[without].drop(columns=["control", "strength"]).merge(settings, on=_SIZE)
    for heading, column in ((_TIMES, "sensitivity"), (_CHANGE, "accuracy")):
        change = changes(others, base, _SETTING, column, relative=heading == _TIMES)
        main = main.merge(change, "left", _SETTING).rename(columns={"change": heading})
    edited = others[others[_EDITED].notna().any(axis=1)]
    of_layers = {"first": "first", "at most": "first_upper", "last": "last", "factor": "factor"}
    return {
        _MAIN: main.reindex(columns=[*_FIRST, *main.columns.difference(_FIRST, sort=False)]),
        _FLIPS: means(edited, _SETTING, FLIPPED, FLIPPED),
        _LAYERS: means(layers, [*_SETTING, "layers"], of_layers),
        _ALONG: means(looks, [*_SETTING, "along_steps"], ALONG, _SHARES),
    }


def parts(records: Any) -> tuple[Any, Any, Any]:
    """The records by table: those measured behind each layer; those measured along the training, a
    row for each look; the others, networks whose units died among them, which have no accuracy
    here, so that they are in no mean.

    Raises:
        InputError: records of one setting differ in another key, such as the temperature.
    """
    # Records of earlier versions have no edits.
    complete = records.reindex(columns=records.columns.union(_EDITED, sort=False))
    titled = complete.assign(
        network=list(map(_network, records.to_dict("records"))),
        map=[_MAPS.get(layer, f"{layer}-raf") for layer in records["layer"]],
        task=list(map(_task, records["task"], records["text"])),
        way=records["control"],
        control=list(map(_control, records["control"], records["target"])),
        accuracy=records["value"].where(records["sensitivity"].notna()),
        died=records["sensitivity"].isna(),
    )
    require_alike(titled, _SETTING, besides=("by_layer", "along"))
    length = titled["n"].map(", {} words".format)
    titled["panel"] = titled["task"] + ": " + titled["network"] + length
    titled = titled.sort_values(["task", "network", "steps", "n", "control"], kind="stable")
    stacked, followed = titled["by_layer"].notna(), titled["along_steps"].notna()
    layers, looks = titled[stacked].copy(), titled[followed].copy()
    layers["first"], layers["last"] = (layers["by_layer"].str[place] for place in (0, -1))
    layers["factor"] = list(map(_growth, layers["by_layer"]))
    for name in ALONG.values():
        missing = looks["along_steps"].map(lambda steps: (None,) * len(steps))
        looks[name] = looks[name].where(looks[name].notna(), missing)
    looks = looks.explode(["along_steps", *ALONG.values()], ignore_index=True)
    numbers = dict.fromkeys(ALONG.values(), float) | {"along_steps": int}
    return layers, looks.astype(numbers), titled[~stacked & ~followed]


_MAPS = {"dense": "rf", "softmax": "raf"}
_LAYER_TITLES = {"dense": "fully connected", "relu": "ReLU"}


def _network(record: dict[str, Any]) -> str:
    """The network in words: "softmax, 6 layers, residual, LayerNorm"."""
    layer = record["layer"]
    parts = [_LAYER_TITLES.get(layer, layer)]
    parts += [f"{record['layers']} layers"] * (record["layers"] > 1)
    options = {"residual": "residual", "norm": "LayerNorm", "mlp": "MLP"}
    # A fully connected network has none of them, which pandas may write as NaN.
    return ", ".join([*parts, *(options[name] for name in options if record[name] is True)])


def _task(task: str, text: Any) -> str:
    """The task in words, and of which texts it is."""
    return TASK_TITLES[task] + (f" of {text_title(text)}" if isinstance(text, str) else "")


def _growth(values: tuple[float, ...]) -> float | None:
    """The factor of S from one layer to the next, geometric mean; None where S is 0 behind the
    first."""
    return (values[-1] / values[0]) ** (1 / (len(values) - 1)) if values[0] and values[1:] else None


def _control(control: str, target: Any) -> str:
    """The control, with the S that it holds."""
    return f"{control} {target:g}" if control == HOLD else control


def findings(records: pd.DataFrame, tables: Tables) -> Iterator[Finding]:
    """Accuracy against the length; what controls do to S and accuracy; labels that a changed word
    flips, S over layers and along the training, and how many networks died."""
    layers, looks, others = parts(records)
    plain = _of_lengths(others)
    few, many = (plain[plain["n"] == plain[end]] for end in ("shortest", "longest"))
    rows = changes(many, few, [*_SERIES, "shortest", "longest"], "accuracy")
    if len(rows):
        phrase = "{0.network}, {0.task}, {0.shortest} to {0.longest} words: {0.change}"
        phrases = "; ".join(map(phrase.format, rows.itertuples()))
        does = tally(rows["change"], "rises", "falls")
        yield Finding(
            f"From the shortest texts to the longest, accuracy without control {does} ({phrases}).",
            rows=(*few["cell"], *many["cell"]),
        )
    if _MAIN in tables:
        controlled = tables[_MAIN].dropna(subset=[_TIMES])
        ways = controlled["control"].str.split().str[0]
        phrases = []
        for way, rows in controlled.groupby(ways, sort=False):
            times = tally(rows[_TIMES], "rises", "falls", none=1.0)
            change = tally(rows[_CHANGE], "rises", "falls")
            phrases.append(f"{way}: S {times}. Accuracy: {change}")
        if phrases:
            compared = others.merge(controlled[_SIZE].drop_duplicates())
            yield Finding(
                f"Compared with no control ({_listed(controlled['task'])}), control "
                f"{'. Control '.join(phrases)}.",
                rows=tuple(compared["cell"]),
            )
    clauses, died = [], others[others["died"]]
    edited = others[(others["way"] == "none") & others[_EDITED].notna().any(axis=1)]
    if len(edited):
        flips = tables[_FLIPS][tables[_FLIPS]["control"] == "none"]
        shares = ", ".join(f"{kind} {{0[{kind}]}}" for kind in FLIPPED)
        phrases = flips.apply(f"{{0[network]}}, {{0[n]}} words: {shares}".format, axis=1)
        clauses.append(
            f"Share of changed words that flip the label, without control: {'; '.join(phrases)}."
        )
    if len(layers):
        changed = tally(tables[_LAYERS]["factor"], "grows", "falls", none=1.0)
        clauses.append(f"From layer to layer ({_listed(layers['task'])}) S {changed}.")
    if len(looks):
        start, end = (looks[looks["along_steps"] == step] for step in (0, looks["steps"]))
        change = changes(end, start, _SETTING, "along_sensitivity")["change"]
        does = tally(change, "rises", "falls")
        clauses.append(f"During the training ({_listed(looks['task'])}) S {does}.")
    if len(died):
        clauses.append(
            f"All units died in {len(died)} of {plural(len(records), 'network')}: the features are "
            "0, S is not defined, and no mean includes these networks."
        )
    if clauses:
        cells = [cell for part in (edited, layers, looks, died) for cell in part["cell"]]
        yield Finding(" ".join(clauses), rows=tuple(dict.fromkeys(cells)))


def _listed(names: Any) -> str:
    return ", ".join(names.unique())


_SERIES = ["network", "task", "d", "steps"]


def _of_lengths(records: Any) -> Any:
    """Trained networks without control, where there are several lengths, with the shortest and the
    longest."""
    plain = records[(records["way"] == "none") & (records["steps"] > 0)]
    lengths = plain.groupby(_SERIES)["n"]
    plain = plain.assign(shortest=lengths.transform("min"), longest=lengths.transform("max"))
    return plain[plain["shortest"] < plain["longest"]]


def figures(records: pd.DataFrame) -> dict[str, Any]:
    """Accuracy and S against the length, S against its target, accuracy against S by control and of
    each network on real texts, S by layer, and what changes along the training."""
    from wordsens.plotting.figures import label_of, lines

    layers, looks, others = parts(records)
    s, share, colour = "word sensitivity S", "share, or AUC", ["map", "network"]
    columns = {s: "sensitivity", "accuracy": "accuracy"}
    lengths = means(_of_lengths(others), [*colour, "task", "n"], columns, ["accuracy"])
    held = others[others["way"] == HOLD]
    targets = means(held, [*colour, "task", "target"], columns)
    ends = [(end, end) for end in (held["target"].min(), held["target"].max())]
    comparable = others[others["panel"].isin(held["panel"]) & ~others["died"]]
    reviews = comparable["text"].notna()
    marks = comparable[reviews].sort_values(["network", "target"], na_position="first")
    ways = marks["control"].replace("none", "no control").str.replace(HOLD, "S held at")
    marks = marks.assign(series=marks["network"] + ", " + ways, **{s: marks["sensitivity"]})
    tradeoff = means(comparable[~reviews], ["panel", "way", "target"], columns, ["accuracy"])
    tradeoff[s] = [mean.value for mean in tradeoff[s]]
    behind = layers.explode("by_layer")
    behind["place"] = behind.groupby("cell").cumcount() + 1
    behind["panel"] = [
        f"{'trained' if steps else 'random'}, {n} words"
        for steps, n in zip(behind["steps"], behind["n"], strict=True)
    ]
    behind = means(behind, ["panel", *colour, "place"], {s: "by_layer"})
    followed = looks[looks["way"] == "none"].assign(step=looks["along_steps"] + 1)
    along = means(followed, ["panel", "step"], _SHARES, _SHARES)
    along = along.melt(["panel", "step"], [*_SHARES], "measure", share)
    of_task = {"colour": colour, "panel": "task"}
    accuracy = {"guides": {"chance": [(None, 0.5)]}, "limits": (0.4, 1.03), **of_task}
    by_each = {
        "colour": "series",
        "joined": False,
        "caption": _EACH,
    }
    by_control = {"colour": "way", "panel": "panel", "share_y": False}
    drawn = {
        "accuracy": (lengths, "n", "accuracy", "x", accuracy),
        "sensitivity": (lengths, "n", s, "xy", of_task),
        "target": (targets, "target", s, "xy", {"guides": {"the target": ends}, **of_task}),
        "tradeoff": (tradeoff, s, "accuracy", "x", by_control),
        "sentiment": (marks, s, "accuracy", "x", by_each),
        "layers": (behind, "place", s, "y", {"colour": colour, "panel": "panel"}),
        "along": (along, "step", share, "x", {"colour": "measure", "panel": "panel"}),
    }
    networks: Any = pd.concat([layers, others])[colour]
    labels = {label_of(row, colour): row["network"] for row in networks.to_dict("records")}
    return {
        f"control-{name}": lines(
            frame,
            x=x,
            y=y,
            log=log,
            labels=labels | _LABELS,
            title=_TITLES[name],
            **{"caption": f"{BARS} {_CAPTION}" if s in (x, y) else BARS, **options},
        )
        for name, (frame, x, y, log, options) in drawn.items()
        if frame[y].notna().any()
    }


_LABELS = {
    HOLD: "with a target",
    "n": "words per text n",
    "target": "target of S",
    "place": "layer",
    "step": "training steps + 1",
}
_TITLES = {
    "accuracy": "Accuracy against text length",
    "sensitivity": "S of trained networks against text length",
    "target": "S after training against its target",
    "tradeoff": "Accuracy against S, by control",
    "sentiment": "Sentiment: accuracy against S",
    "layers": "S behind each layer",
    "along": "During the training, without control",
}
_EACH = (
    "One mark per trained network. All are judged on the same held-out texts. S is a lower bound."
)
_CAPTION = "S is a lower bound: the median over a few held-out texts of the largest of a few words."

STUDY = Study(
    name="control",
    Cell=ControlCell,
    measure=measure,
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note=f"Means over draws, {INTERVALS}, without networks that died. S: a lower bound, the median "
    "over a few held-out texts of the largest of a few words. Robust: the share of texts that stay "
    "correct when any one of a few words moves by sqrt(d), an upper bound. docs/control.md "
    "explains the other columns.",
)
