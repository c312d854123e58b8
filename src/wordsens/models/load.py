"""One call that makes a model of whatever stands for one."""

import importlib.util
from pathlib import Path
from typing import Any

from wordsens.errors import (
    InputError,
    first_line,
    require_choice,
    require_count,
    require_device,
    require_extra,
    without_secrets,
)
from wordsens.files import named_path
from wordsens.maps.transformer.features import OWN, POOL_NAMES, TransformerFeatures
from wordsens.maps.transformer.loaded import LoadedModel, load_parts
from wordsens.models.black_box import Model
from wordsens.models.endpoint import Endpoint, EndpointModel
from wordsens.models.function import FunctionModel
from wordsens.models.pairs import CrossEncoderModel, FunctionPairModel, MultiVectorModel, PairModel
from wordsens.models.sentence import PlainTransformer, SentenceTransformerModel, TransformerModel
from wordsens.text import pretrained
from wordsens.text.loaded_models import is_instance, is_loaded_model, is_sentence_transformer
from wordsens.text.model_files import model_folder
from wordsens.text.pretrained import (
    OWN_CODE,
    Access,
    encoder_kind,
    find_model,
    quiet_transformers,
    read_object,
)

_KINDS = (
    "a name or folder, a pair (model, tokenizer), a transformers pipeline, a SentenceTransformer, "
    "a function from a list of texts to an array (texts, d), or an Endpoint"
)
_MODULES_FILE = "modules.json"
_CLASSIFIER = "ForSequenceClassification"
_CROSS, _MULTI_VECTOR, _SPARSE = "CrossEncoder", "MultiVectorEncoder", "SparseEncoder"


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
            or a pipeline; a SentenceTransformer or SparseEncoder; a TransformerFeatures with a
            pool; a function from a list of texts to an array (m, d), which may be sparse, or an
            object with such an `encode`; an Endpoint. A Model is given back as it is.
        pool: of a transformer: "mean", "cls", "last" or "max"; "own", that of its
            sentence-transformers files. None: its own where it has one, else what
            sentence-transformers takes: the last token of causal language models, the mean of
            others.
        prompt_name: of a SentenceTransformer: the prompt before every text; "query" and "document"
            give what its `encode_query` and `encode_document` give; None: what `encode` gives.
        revision: branch, tag or commit of a name on the hub.
        device: of a model that is loaded here; loaded ones stay where they are.
        batch_size: texts per call, or per request to an endpoint.
        local_files_only: never ask the hub.

    Raises:
        InputError: anything else, a model that cannot be loaded, or a function that changes its
            mind.
        EndpointError: the endpoint does not answer, or not rightly.

    >>> as_model("minilm").encode(["The door is open.", "The door is not open."]).shape
    torch.Size([2, 384])
    """
    require_count("batch_size", batch_size)
    if pool is not None:
        require_choice("pool", pool, POOL_NAMES)
    if isinstance(model, str | Path):
        built = _named(
            str(model), pool, revision, require_device(device), batch_size, local_files_only
        )
    elif revision is not None:
        raise InputError(
            f"`revision` (={revision!r}) is of a name on the Hugging Face hub; leave it out for an "
            "object"
        )
    elif pool in (None, OWN) and (
        is_sentence_transformer(model) or is_instance(model, "sentence_transformers", _SPARSE)
    ):
        built = SentenceTransformerModel(model, name=_name_of(model), batch_size=batch_size)
    elif is_loaded_model(model):
        built = _transformer(load_parts(model), pool, batch_size)
    elif pool is not None:
        raise InputError(
            f"`pool` (={pool!r}) is of a transformer's states; leave it out for a "
            f"{type(model).__name__}"
        )
    else:
        built = _other(model, batch_size)
    return built if prompt_name is None else built.prompted(prompt_name)


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
        InputError: anything else, or a model that cannot be loaded or gives more than one score a
            pair.
    """
    require_count("batch_size", batch_size)
    if isinstance(model, PairModel):
        return model
    if isinstance(model, str | Path):
        loaded = _pair_encoder(str(model), revision, require_device(device), local_files_only)
        kind = (
            MultiVectorModel
            if is_instance(loaded, "sentence_transformers", _MULTI_VECTOR)
            else CrossEncoderModel
        )
        return kind(loaded, name=str(model), batch_size=batch_size)
    if is_instance(model, "sentence_transformers", _MULTI_VECTOR):
        return MultiVectorModel(model, name=_name_of(model), batch_size=batch_size)
    if is_instance(model, "sentence_transformers", _CROSS):
        return CrossEncoderModel(model, name=_name_of(model), batch_size=batch_size)
    if callable(model) and not isinstance(model, type) and not hasattr(model, "parameters"):
        return FunctionPairModel(model, name=_name_of(model), batch_size=batch_size)
    raise InputError(
        f"`model` (a {type(model).__name__}) does not score pairs; pass a CrossEncoder or a "
        "MultiVectorEncoder, its "
        "name or folder, or a function from two lists of texts to a list of scores"
    )


def is_pair_model(model: Any, revision: str | None = None) -> bool:
    """True where `as_pair_model` is the call for it: a CrossEncoder or a MultiVectorEncoder, or the
    name of one on this machine."""
    if not isinstance(model, str | Path):
        return isinstance(model, PairModel) or any(
            is_instance(model, "sentence_transformers", kind) for kind in (_CROSS, _MULTI_VECTOR)
        )
    folder = _folder(str(model), revision)
    if folder is None:
        return False
    return encoder_kind(folder) in (_CROSS, _MULTI_VECTOR) or _classes(folder) == 1


def load(model: Any, **options: Any) -> Model | PairModel:
    """`as_pair_model` of what scores pairs, `as_model` of everything else; a model of pairs has no
    pool or prompt."""
    if is_pair_model(model, options.get("revision")):
        wrong = next(
            (name for name in ("pool", "prompt_name") if options.get(name) is not None), None
        )
        if wrong is not None:
            raise InputError(
                f"`{wrong}` (={options[wrong]!r}) is of a model of texts, and {model} scores pairs"
            )
        return as_pair_model(
            model, **{key: value for key, value in options.items() if value is not None}
        )
    return as_model(model, **{key: value for key, value in options.items() if value is not None})


def _named(
    name: str,
    pool: str | None,
    revision: str | None,
    device: str,
    batch_size: int,
    local_files_only: bool,
) -> Model:
    if "://" in name:
        raise InputError(
            f"`model` (={without_secrets(name)!r}) is an address; pass Endpoint(url=...), on the "
            "command line "
            "--endpoint"
        )
    if ":" in name and not named_path("model", name).exists():
        raise InputError(
            f"`model` (={name!r}) is no name; pass the function itself, on the command line "
            "--encode"
        )
    _require_vectors(name, pool, revision)
    access, folder = (
        Access(local_files_only=local_files_only, revision=revision),
        _folder(name, revision),
    )
    try:
        if folder is not None and pool in (None, OWN) and encoder_kind(folder) == _SPARSE:
            raise InputError(
                f"the model {name!r} is a {_SPARSE}: its vectors are not run from rows"
            )
        built = _transformer(load_parts(name, device=device, access=access), pool, batch_size)
    except InputError as refused:
        folder = _folder(name, revision)
        library = folder is not None and (folder / _MODULES_FILE).is_file()
        if (
            not library
            or pool not in (None, OWN)
            or importlib.util.find_spec("sentence_transformers") is None
        ):
            raise
        try:
            loaded = pretrained.sentence_transformer(
                name, name, True, Access(revision=revision), device
            )
        except InputError:
            raise refused from None
        return SentenceTransformerModel(loaded, name=name, batch_size=batch_size)
    # What the hub had alone is known now.
    _require_vectors(name, pool, revision)
    return built


def _require_vectors(name: str, pool: str | None, revision: str | None) -> None:
    """InputError for the name of a model of pairs or of a classifier, as far as it is on this
    machine."""
    folder = _folder(name, revision)
    if folder is None or pool is not None:
        return
    if is_pair_model(name, revision):
        raise InputError(
            f"the model {name!r} scores pairs of texts: use as_pair_model({name!r}), or pass "
            "pool='mean' for the mean "
            "of its hidden states"
        )
    classes = 0 if (folder / _MODULES_FILE).is_file() else _classes(folder)
    if classes > 1:
        raise InputError(
            f"the model {name!r} is a classifier of {classes} labels, not an embedding: use it "
            "with flips, or with "
            "explain --classes; pass pool='mean' for the mean of its hidden states"
        )


def _transformer(loaded: LoadedModel, pool: str | None, batch_size: int) -> Model:
    """The model by its map, or by its own forward pass where it has none."""
    native = pool == OWN or (pool is None and loaded.sentence is not None)
    chosen = OWN if native else pool or _usual_pool(loaded.model)
    name = loaded.name if native else f"{loaded.name} ({chosen})"
    try:
        phi = TransformerFeatures(loaded, pool=chosen)
    except InputError as refused:
        if native:
            raise
        return PlainTransformer(loaded, chosen, name=name, refused=refused, batch_size=batch_size)
    phi.reading().cuts = True
    return TransformerModel(phi, name=name, batch_size=batch_size)


def _usual_pool(model: Any) -> str:
    """The pooling that sentence-transformers gives a model that says nothing of its own."""
    architectures = getattr(model.config, "architectures", None) or [type(model).__name__]
    causal = architectures[0].endswith("ForCausalLM") and getattr(model.config, "is_causal", True)
    return "last" if causal else "mean"


def _other(model: Any, batch_size: int) -> Model:
    """A model of ours, an endpoint or a black box."""
    if isinstance(model, Model):
        return model
    if isinstance(model, TransformerFeatures):
        return TransformerModel(model, name=model.name, batch_size=batch_size)
    if isinstance(model, Endpoint):
        return EndpointModel(model, batch_size=batch_size)
    if is_pair_model(model):
        raise InputError(
            f"`model` (a {type(model).__name__}) scores pairs, not texts; use as_pair_model"
        )
    encode = getattr(model, "encode", None)
    function = encode if callable(encode) else model
    if callable(function) and not _is_half_a_pair(model):
        built = FunctionModel(function, name=_name_of(model), batch_size=batch_size)
        built.require_steady()
        return built
    raise InputError(f"`model` (a {type(model).__name__}) is none that is known; pass {_KINDS}")


def _is_half_a_pair(model: Any) -> bool:
    """True for a class, or a transformer or tokenizer alone, which can be called but gives texts no
    vectors."""
    return (
        isinstance(model, type)
        or hasattr(model, "get_vocab")
        or is_instance(model, "transformers", "PreTrainedModel")
    )


def _name_of(model: Any) -> str:
    """The name of an object: a function's own name, a loaded model's, or its class."""
    inner = getattr(model, "transformers_model", None)
    path = str(getattr(getattr(inner, "config", None), "_name_or_path", "") or "")
    if path:
        return Path(path).name if Path(path).is_absolute() else path
    return str(getattr(model, "__name__", type(model).__name__))


def _pair_encoder(name: str, revision: str | None, device: str, local_files_only: bool) -> Any:
    """The CrossEncoder or MultiVectorEncoder of that name."""
    require_extra("models", f"the CrossEncoder {name!r}", "sentence_transformers")
    place, local = find_model(name, revision, local_files_only=local_files_only)
    import sentence_transformers

    folder = _folder(name, revision)
    kind = _MULTI_VECTOR if folder is not None and encoder_kind(folder) == _MULTI_VECTOR else _CROSS
    if not hasattr(sentence_transformers, kind):
        raise InputError(
            f"the model {name!r} is a {kind}, which this sentence-transformers lacks; install 6 or "
            "later"
        )
    try:
        with quiet_transformers():
            model = getattr(sentence_transformers, kind)(
                place, device=device, revision=revision, local_files_only=local
            )
    except Exception as error:  # the library raises what its modules raise
        # The library's messages of a module and of a model differ.
        own_code = any(
            words in str(error)
            for words in ("trust_remote_code", "custom code", "third-party code")
        )
        remedy = OWN_CODE.partition("; on the command line")[
            0
        ]  # which has no models of pairs but by their names
        reason = f" without code of its own, {remedy}" if own_code else f": {first_line(error)}"
        raise InputError(f"no {kind} {name!r}: it cannot be loaded{reason}") from error
    # Of any other model the library makes a classifier with random weights.
    if not is_pair_model(name, revision):
        raise InputError(
            f"the model {name!r} does not score pairs: it is no CrossEncoder; use it as a model of "
            "texts"
        )
    return model


def _folder(name: str, revision: str | None) -> Path | None:
    """The folder of the model's files; None where it is not on this machine."""
    try:
        return model_folder(name, revision)
    except InputError:
        return None
    except ModuleNotFoundError:
        require_extra("models", f"the model {name!r}", "huggingface_hub")
        raise


def _classes(folder: Path) -> int:
    """The labels of a classifier's folder; 0 of another model's."""
    config = read_object(folder / "config.json")
    architectures, labels = config.get("architectures"), config.get("id2label")
    classifies = isinstance(architectures, list) and str(*architectures[:1]).endswith(_CLASSIFIER)
    if not classifies:
        return 0
    return len(labels) if isinstance(labels, dict) else 2  # transformers leaves out the usual two
