"""One call that makes a model of whatever stands for one."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wordsens.errors import (
    InputError,
    require_choice,
    require_count,
    require_device,
    without_secrets,
)
from wordsens.models.cross_encoder import CrossEncoderModel
from wordsens.models.endpoint import Endpoint, endpoint_model
from wordsens.models.function import FunctionModel
from wordsens.models.model import Model
from wordsens.models.multi_vector import MultiVectorModel
from wordsens.models.pairs import FunctionPairModel, PairModel
from wordsens.models.pretrained import (
    MODULES_FILE,
    classes_of,
    library_class,
    load_library_model,
    load_transformer,
    model_folder,
    require_words,
)
from wordsens.models.sentence_transformer import SentenceTransformerModel
from wordsens.models.text_model import OWN, POOL_NAMES, TextModel, frozen_views

_LIBRARY = "sentence_transformers"
_PAIR_MODELS = {"CrossEncoder": CrossEncoderModel, "MultiVectorEncoder": MultiVectorModel}
_DTYPES = (None, torch.float32, torch.bfloat16, torch.float64)


def as_model(
    model: Any,
    *,
    pool: str | None = None,
    prompt_name: str | None = None,
    revision: str | None = None,
    device: str = "cpu",
    batch_size: int = 32,
    local_files_only: bool = False,
) -> Model:
    """Whatever stands for an embedding model, as a Model.

    Args:
        model: a name on the hub, a folder or "minilm"; a pair (model, tokenizer) of transformers,
            or a pipeline; a SentenceTransformer or SparseEncoder; a function from a list of texts
            to an array (m, d), which may be sparse, or an object with such an `encode`; an
            Endpoint. A Model, such as a TransformerFeatures with a pool, is given back as it is.
        pool: of a transformer: "mean", "cls", "last" or "max"; "own", that of its
            sentence-transformers files. None: its own where it has one, else what
            sentence-transformers takes: the last token of causal language models, the mean of
            others.
        prompt_name: of a SentenceTransformer: the prompt before every text; "query" and "document"
            give what its `encode_query` and `encode_document` give; None: what `encode` gives.
        revision: branch, tag or commit of a name on the hub.
        device: of a model that is loaded here; loaded ones stay where they are.
        batch_size: texts at a time.
        local_files_only: never ask the hub.

    Raises:
        InputError: anything else, a model that cannot be loaded, or a function that changes its
            mind.
        EndpointError: the endpoint does not answer, or not rightly.

    >>> as_model("minilm").encode(["The door is open.", "The door is not open."]).shape
    torch.Size([2, 384])
    """
    require_count("batch_size", batch_size)
    if revision is not None and not _is_name(model):
        raise InputError(
            f"`revision` (={revision!r}) is of a name on the Hugging Face hub; leave it out for an "
            "object"
        )
    if pool is not None and not (_is_name(model) or is_transformer(model)):
        raise InputError(
            f"`pool` (={pool!r}) is of a transformer's states; leave it out for a "
            f"{type(model).__name__}"
        )
    options = {"revision": revision, "device": device, "local_files_only": local_files_only}
    adapter = next((adapter for stands_for, adapter in ADAPTERS if stands_for(model)), None)
    if adapter is None:
        raise InputError(
            f"`model` (a {type(model).__name__}) is none that is known; pass a name or folder, a "
            "pair (model, tokenizer), a transformers pipeline, a SentenceTransformer, a function "
            "from a list of texts to an array (texts, d), or an Endpoint"
        )
    built = adapter(model, {**options, "pool": pool, "batch_size": batch_size})
    return built if prompt_name is None else built.prompted(prompt_name)


def load_text_model(
    source: Any,
    *,
    pool: str | None = None,
    vectors: bool = False,
    head: bool = False,
    dtype: torch.dtype | None = None,
    device: str = "cpu",
    attention: str | None = "eager",
    local_files_only: bool = False,
    revision: str | None = None,
    batch_size: int = 32,
) -> TextModel:
    """The TextModel of a name, a folder, a pair (model, tokenizer), a pipeline or a
    SentenceTransformer; an object's weights are shared.

    Args:
        vectors: whether it is a model of one vector per text, which cuts texts that are too long;
            a pool of None then stands for the model's own, or the usual one.
        head: load the head of the model's task.
        dtype: in which it computes; None: float32, or that of the object.
        attention: of a name or folder: "eager", from which attention weights can be read, "sdpa",
            or None for what transformers chooses.
        device, local_files_only, revision: of a name or folder.

    Raises what `model_folder` and `load_transformer` raise.
    """
    if pool is not None:
        require_choice("pool", pool, POOL_NAMES)
    if attention is not None:
        require_choice("attention", attention, ("eager", "sdpa"))
    if dtype not in _DTYPES:
        raise InputError(
            f"`dtype` (={dtype}) must be torch.float32, torch.bfloat16 or torch.float64"
        )
    library: Any = None
    if _is_name(source):
        name = str(source)
        folder = model_folder(name, revision, local_files_only=local_files_only)
        options = {"head": head, "dtype": dtype or torch.float32, "attention": attention}
        model, tokenizer = load_transformer(name, folder, **options)
        model = model.to(require_device(device))
        has_pooling = not head and (folder / MODULES_FILE).is_file()
        if has_pooling and (pool == OWN or (pool is None and vectors)):
            library = _around(name, folder, model, device)
    else:
        model, tokenizer, name = _parts(source)
        model = model.to(dtype)
        has_pooling = is_of(source, _LIBRARY, "SentenceTransformer")
        library = source
    if has_pooling and (pool == OWN or (pool is None and vectors)):
        return SentenceTransformerModel(library, name=name, batch_size=batch_size)
    pool = _usual_pool(model) if pool is None and vectors else pool
    name = f"{name} ({pool})" if vectors else name
    made = TextModel(model, tokenizer, name, pool=pool, cuts=vectors, batch_size=batch_size)
    made.library = has_pooling
    return made


def _around(name: str, folder: Path, model: Any, device: str) -> Any:
    """The SentenceTransformer of a folder, made to run this model, whose weights were checked."""
    library = load_library_model(name, folder, device)
    if not is_of(library, _LIBRARY, "SentenceTransformer"):
        raise InputError(
            f"the model {name!r} is a {type(library).__name__}: its vectors are not run from rows; "
            "use as_model or as_pair_model"
        )
    for place, child in list(library[0].named_children()):
        if hasattr(child, "config"):
            setattr(library[0], place, model)
    return library


def _parts(source: Any) -> tuple[Any, Any, str]:
    """A view of a loaded model, with modes and gradients of its own, its tokenizer and its name."""
    if is_of(source, _LIBRARY, "SentenceTransformer"):
        model, tokenizer = (getattr(source[0], part, None) for part in ("auto_model", "tokenizer"))
    elif is_of(source, "transformers", "Pipeline"):
        model, tokenizer = source.model, source.tokenizer
    elif is_transformer(source):
        model, tokenizer = source
    else:
        raise InputError(
            f"a transformer cannot be made of a {type(source).__name__}; pass a name, a folder, a "
            "pair (model, tokenizer), a transformers pipeline or a SentenceTransformer"
        )
    name = name_of(model if hasattr(model, "config") else source)
    if not isinstance(model, nn.Module) or not hasattr(tokenizer, "get_vocab"):
        raise InputError(
            f"{name} does not run a transformer with a tokenizer, so that it has no rows to move"
        )
    if any(weight.is_meta for weight in model.parameters()):
        raise InputError(
            f"the weights of {name} are on the meta device, where they have no numbers; load them"
        )
    require_words(tokenizer, name)
    return frozen_views([model])[0], tokenizer, name


def _usual_pool(model: Any) -> str:
    """The pooling that sentence-transformers gives a model that says nothing of its own."""
    architectures = getattr(model.config, "architectures", None) or [type(model).__name__]
    causal = architectures[0].endswith("ForCausalLM") and getattr(model.config, "is_causal", True)
    return "last" if causal else "mean"


def _by_name(model: str | Path, options: dict[str, Any]) -> Model:
    name, pool = str(model), options["pool"]
    if "://" in name:
        raise InputError(
            f"`model` (={without_secrets(name)!r}) is an address; pass Endpoint(url=...), on the "
            "command line --endpoint"
        )
    if ":" in name and not Path(name).exists():
        raise InputError(
            f"`model` (={name!r}) is no name; pass the function itself, on the command line "
            "--encode"
        )
    local = options["local_files_only"]
    folder = model_folder(name, options["revision"], local_files_only=local)
    kind, classes = library_class(folder), classes_of(folder)
    if pool is None and kind in _PAIR_MODELS:
        raise InputError(
            f"the model {name!r} scores pairs of texts: use as_pair_model({name!r}), or pass "
            "pool='mean' for the mean of its hidden states"
        )
    if pool is None and not kind and classes > 1:
        raise InputError(
            f"the model {name!r} is a classifier of {classes} labels, not an embedding: use it "
            "with flips, or with explain --classes; pass pool='mean' for the mean of its hidden "
            "states"
        )
    by_library = kind and pool in (None, OWN) and find_spec(_LIBRARY) is not None
    try:
        if kind != "SparseEncoder":
            return load_text_model(name, vectors=True, **options)
    except InputError:
        # Only the library can run it, such as an embedding without a transformer.
        if not by_library:
            raise
    library = load_library_model(name, folder, require_device(options["device"]))
    return SentenceTransformerModel(library, name=name, batch_size=options["batch_size"])


def _of_object(model: Any, options: dict[str, Any]) -> Model:
    """A SentenceTransformer or SparseEncoder by its own `encode`, unless another pool is named."""
    if options["pool"] not in (None, OWN):
        return load_text_model(model, vectors=True, **options)
    return SentenceTransformerModel(model, name=name_of(model), batch_size=options["batch_size"])


def _of_function(model: Any, options: dict[str, Any]) -> Model:
    """A function of texts, or an object with such an `encode`."""
    encode = getattr(model, "encode", None)
    function = encode if callable(encode) else model
    built = FunctionModel(function, name=name_of(model), batch_size=options["batch_size"])
    built.require_steady()
    return built


def _refuse_pairs(model: Any, options: dict[str, Any]) -> Model:
    raise InputError(
        f"`model` (a {type(model).__name__}) scores pairs, not texts; use as_pair_model"
    )


def is_of(given: Any, package: str, *names: str) -> bool:
    """True for an object of one of these classes of the package, which is not imported for the
    question."""
    return any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package
        for kind in type(given).__mro__
    )


def is_transformer(given: Any) -> bool:
    """True for a pair (model, tokenizer), a transformers pipeline and a SentenceTransformer."""
    pair = isinstance(given, tuple | list) and len(given) == 2 and hasattr(given[0], "config")
    library = is_of(given, _LIBRARY, "SentenceTransformer")
    return pair or library or is_of(given, "transformers", "Pipeline")


def name_of(model: Any) -> str:
    """The name of an object: a function's own name, a loaded model's, or its class."""
    inner = getattr(model, "transformers_model", model)
    path = str(getattr(getattr(inner, "config", None), "_name_or_path", "") or "")
    if path:
        return Path(path).name if Path(path).is_absolute() else path
    return str(getattr(model, "__name__", type(model).__name__))


def _is_name(given: Any) -> bool:
    return isinstance(given, str | Path)


def _gives_vectors(given: Any) -> bool:
    """True for a function, or an object with `encode`; a class, and a transformer or tokenizer
    alone, can be called but give texts no vectors."""
    half = isinstance(given, type) or hasattr(given, "get_vocab")
    half = half or is_of(given, "transformers", "PreTrainedModel")
    return not half and (callable(given) or callable(getattr(given, "encode", None)))


Adapter = Callable[[Any, dict[str, Any]], Model]

ADAPTERS: tuple[tuple[Callable[[Any], bool], Adapter], ...] = (
    (lambda given: isinstance(given, Model), lambda model, options: model),
    (_is_name, _by_name),
    (lambda given: is_of(given, _LIBRARY, "SentenceTransformer", "SparseEncoder"), _of_object),
    (is_transformer, lambda model, options: load_text_model(model, vectors=True, **options)),
    (
        lambda given: isinstance(given, Endpoint),
        lambda model, options: endpoint_model(model, batch_size=options["batch_size"]),
    ),
    (lambda given: is_pair_model(given), _refuse_pairs),
    (_gives_vectors, _of_function),
)
"""What stands for a model of texts, and what makes the model of it: the first that fits is used.
Support for a new kind of model is one more row."""


def as_pair_model(
    model: Any,
    *,
    revision: str | None = None,
    device: str = "cpu",
    batch_size: int = 32,
    local_files_only: bool = False,
) -> PairModel:
    """Whatever stands for a model that scores pairs, as a PairModel.

    Args:
        model: a CrossEncoder or a MultiVectorEncoder, or the name or folder of one; a function from
            two lists of m texts to m scores. A PairModel is given back as it is.
        revision, device, batch_size, local_files_only: as of `as_model`.

    Raises:
        MissingExtraError: a name, and sentence-transformers is not installed.
        InputError: anything else, or a model that cannot be loaded or gives more than one score per
            pair.
    """
    require_count("batch_size", batch_size)
    if isinstance(model, PairModel):
        return model
    name = str(model) if _is_name(model) else name_of(model)
    if _is_name(model):
        folder = model_folder(name, revision, local_files_only=local_files_only)
        # Of any other model the library would make a classifier with random weights.
        if library_class(folder) not in _PAIR_MODELS:
            raise InputError(
                f"the model {name!r} does not score pairs: it is no CrossEncoder; use it as a "
                "model of texts"
            )
        model = load_library_model(name, folder, require_device(device))
    for kind, adapter in _PAIR_MODELS.items():
        if is_of(model, _LIBRARY, kind):
            return adapter(model, name=name, batch_size=batch_size)
    if callable(model) and not isinstance(model, type) and not hasattr(model, "parameters"):
        return FunctionPairModel(model, name=name, batch_size=batch_size)
    raise InputError(
        f"`model` (a {type(model).__name__}) does not score pairs; pass a CrossEncoder or a "
        "MultiVectorEncoder, its name or folder, or a function from two lists of texts to a list "
        "of scores"
    )


def is_pair_model(model: Any, revision: str | None = None) -> bool:
    """True where `as_pair_model` is the call for it: a CrossEncoder or a MultiVectorEncoder, or the
    name of one."""
    if not _is_name(model):
        return isinstance(model, PairModel) or is_of(model, _LIBRARY, *_PAIR_MODELS)
    try:
        return library_class(model_folder(str(model), revision)) in _PAIR_MODELS
    except InputError:  # as_model says what is wrong with the name
        return False


def load(model: Any, **options: Any) -> Model | PairModel:
    """`as_pair_model` of what scores pairs, `as_model` of everything else; a model of pairs has no
    pool or prompt."""
    given = {name: value for name, value in options.items() if value is not None}
    if not is_pair_model(model, options.get("revision")):
        return as_model(model, **given)
    wrong = next((name for name in ("pool", "prompt_name") if name in given), None)
    if wrong is not None:
        raise InputError(
            f"`{wrong}` (={given[wrong]!r}) is of a model of texts, and {model} scores pairs"
        )
    return as_pair_model(model, **given)
