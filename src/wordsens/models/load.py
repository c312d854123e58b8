"""`as_model` and `as_pair_model`: one call for every kind of model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, argument, require_count, require_device, without_secrets
from wordsens.models.cross_encoder import CrossEncoderModel
from wordsens.models.endpoint import Endpoint, EndpointModel
from wordsens.models.function import FunctionModel
from wordsens.models.model import Model
from wordsens.models.model_files import (
    classes_of,
    library_class,
    model_folder,
    starts_with_transformer,
)
from wordsens.models.multi_vector import MultiVectorModel
from wordsens.models.pairs import FunctionPairModel, PairModel
from wordsens.models.pretrained import (
    LIBRARY,
    is_name,
    is_of,
    is_transformer,
    load_library_model,
    load_text_model,
    name_of,
)
from wordsens.models.sentence_transformer import SentenceTransformerModel
from wordsens.models.text_model import OWN

_PAIR_MODELS = {"CrossEncoder": CrossEncoderModel, "MultiVectorEncoder": MultiVectorModel}


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
    """The Model of a name, a folder, a loaded model, a function or an endpoint.

    Args:
        model: a name on the hub, a folder or "minilm"; a pair (model, tokenizer) of transformers,
            or a pipeline; a SentenceTransformer or SparseEncoder; a function from a list of texts
            to an array (m, d), which may be sparse, or an object with such an `encode`; an
            Endpoint. A Model, such as a TransformerFeatures with a pool, is returned unchanged.
        pool: of a transformer: "mean", "cls", "last" or "max"; "own", that of its
            sentence-transformers files. None: its own if it has one, else the choice of
            sentence-transformers: the last token for causal language models, the mean for others.
        prompt_name: of a SentenceTransformer: the prompt before every text; "query" and "document"
            give what its `encode_query` and `encode_document` give; None: what `encode` gives.
        revision: branch, tag or commit of a name on the hub.
        device: where a name or folder is loaded; loaded models stay where they are.
        batch_size: texts per call, or per request to an endpoint.
        local_files_only: never ask the hub.

    Raises:
        InputError: anything else, a model that cannot be loaded, or a function that gives different
            vectors for one sentence.
        EndpointError: the endpoint gives no answer, or a wrong one.

    >>> as_model("minilm").encode(["The door is open.", "The door is not open."]).shape
    torch.Size([2, 384])
    """
    require_count("batch_size", batch_size)
    if revision is not None and not is_name(model):
        raise InputError(
            f"{argument('revision')} (={revision!r}) needs a name on the Hugging Face hub; leave "
            "it out for an object"
        )
    if pool is not None and not (is_name(model) or is_transformer(model)):
        raise InputError(
            f"{argument('pool')} (={pool!r}) needs a transformer's states; leave it out for a "
            f"{type(model).__name__}"
        )
    options = {"revision": revision, "device": device, "local_files_only": local_files_only}
    adapter = next((adapter for stands_for, adapter in ADAPTERS if stands_for(model)), None)
    if adapter is None:
        raise InputError(
            f"{argument('model')} (a {type(model).__name__}) is of an unknown kind; pass a name or "
            "folder, a pair (model, tokenizer), a transformers pipeline, a SentenceTransformer, a "
            "function from a list of texts to an array (texts, d), or an Endpoint"
        )
    built = adapter(model, {**options, "pool": pool, "batch_size": batch_size})
    return built if prompt_name is None else built.prompted(prompt_name)


def _by_name(model: str | Path, options: dict[str, Any]) -> Model:
    name, pool = str(model), options["pool"]
    if "://" in name:
        raise InputError(
            f"{argument('model')} (={without_secrets(name)!r}) is an address; pass "
            "Endpoint(url=...), on the command line --endpoint"
        )
    if ":" in name and not Path(name).exists():
        raise InputError(
            f"{argument('model')} (={name!r}) is not a name; pass the function itself, on the "
            "command line --encode"
        )
    local = options["local_files_only"]
    folder = model_folder(name, options["revision"], local_files_only=local)
    kind, classes = library_class(folder), classes_of(folder)
    if pool is None and kind in _PAIR_MODELS:
        raise InputError(
            f"the model {name!r} scores pairs of texts: use as_pair_model({name!r}), or pass "
            f"{argument('pool', 'mean')} for the mean of its hidden states"
        )
    if pool is None and not kind and classes > 1:
        raise InputError(
            f"the model {name!r} is a classifier of {classes} labels, not an embedding: use it "
            f"with explain --classes; pass {argument('pool', 'mean')} for the mean of its hidden "
            "states"
        )
    by_library = kind == "SparseEncoder" or not starts_with_transformer(folder)
    if not by_library or pool not in (None, OWN):
        # Vectors alone need no attention weights: the fused kernel is faster.
        return load_text_model(name, vectors=True, attention=None, **options)
    library = load_library_model(name, folder, require_device(options["device"]))
    return SentenceTransformerModel(library, name=name, batch_size=options["batch_size"])


def _of_object(model: Any, options: dict[str, Any]) -> Model:
    """A SentenceTransformer or SparseEncoder with its own `encode`, unless another pool is
    given."""
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
        f"{argument('model')} (a {type(model).__name__}) scores pairs, not texts; use as_pair_model"
    )


def _gives_vectors(given: Any) -> bool:
    """True for a function or an object with `encode`. A class, a transformer and a tokenizer can be
    called too, but give no vectors."""
    half = isinstance(given, type) or hasattr(given, "get_vocab")
    half = half or is_of(given, "transformers", "PreTrainedModel")
    return not half and (callable(given) or callable(getattr(given, "encode", None)))


Adapter = Callable[[Any, dict[str, Any]], Model]

ADAPTERS: tuple[tuple[Callable[[Any], bool], Adapter], ...] = (
    (lambda given: isinstance(given, Model), lambda model, options: model),
    (is_name, _by_name),
    (lambda given: is_of(given, LIBRARY, "SentenceTransformer", "SparseEncoder"), _of_object),
    (is_transformer, lambda model, options: load_text_model(model, vectors=True, **options)),
    (
        lambda given: isinstance(given, Endpoint),
        lambda model, options: EndpointModel(model, batch_size=options["batch_size"]),
    ),
    (lambda given: is_pair_model(given), _refuse_pairs),
    (_gives_vectors, _of_function),
)
"""For each kind of model a test of the object, and the function that makes the model; the first row
that fits is used. A new kind of model is one more row."""


def as_pair_model(
    model: Any,
    *,
    revision: str | None = None,
    device: str = "cpu",
    batch_size: int = 32,
    local_files_only: bool = False,
) -> PairModel:
    """The PairModel of a CrossEncoder, a MultiVectorEncoder, its name, or a function of two lists.

    Args:
        model: a CrossEncoder or a MultiVectorEncoder, or the name or folder of one; a function from
            two lists of m texts to m scores. A PairModel is returned unchanged.
        revision, device, batch_size, local_files_only: as in `as_model`.

    Raises:
        MissingExtraError: a name, and sentence-transformers is not installed.
        InputError: anything else, or a model that cannot be loaded or gives more than one score per
            pair.
    """
    require_count("batch_size", batch_size)
    if isinstance(model, PairModel):
        return model
    name = str(model) if is_name(model) else name_of(model)
    if is_name(model):
        folder = model_folder(name, revision, local_files_only=local_files_only)
        # Of any other model the library would make a classifier with random weights.
        if library_class(folder) not in _PAIR_MODELS:
            raise InputError(
                f"the model {name!r} does not score pairs: it is no CrossEncoder; use it as a "
                "model of texts"
            )
        model = load_library_model(name, folder, require_device(device))
    for kind, adapter in _PAIR_MODELS.items():
        if is_of(model, LIBRARY, kind):
            return adapter(model, name=name, batch_size=batch_size)
    if callable(model) and not isinstance(model, type) and not hasattr(model, "parameters"):
        return FunctionPairModel(model, name=name, batch_size=batch_size)
    raise InputError(
        f"{argument('model')} (a {type(model).__name__}) does not score pairs; pass a CrossEncoder "
        "or a MultiVectorEncoder, its name or folder, or a function from two lists of texts to a "
        "list of scores"
    )


def is_pair_model(
    model: Any, revision: str | None = None, *, local_files_only: bool = False
) -> bool:
    """True where `as_pair_model` is the call for it: a CrossEncoder or a MultiVectorEncoder, or the
    name of one."""
    if not is_name(model):
        return isinstance(model, PairModel) or is_of(model, LIBRARY, *_PAIR_MODELS)
    try:
        folder = model_folder(str(model), revision, local_files_only=local_files_only)
    except InputError:  # as_model says what is wrong with the name
        return False
    return library_class(folder) in _PAIR_MODELS


def load(model: Any, **options: Any) -> Model | PairModel:
    """`as_pair_model` for models that score pairs, `as_model` for everything else; models of pairs
    have no pool or prompt."""
    given = {name: value for name, value in options.items() if value is not None}
    files = {name: given[name] for name in ("revision", "local_files_only") if name in given}
    if not is_pair_model(model, **files):
        return as_model(model, **given)
    wrong = next((name for name in ("pool", "prompt_name") if name in given), None)
    if wrong is not None:
        raise InputError(
            f"{argument(wrong)} (={given[wrong]!r}) needs a model of texts, and {model} scores "
            "pairs"
        )
    return as_pair_model(model, **given)
