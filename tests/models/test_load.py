"""Models from a folder or the hub: what is loaded, what is refused, the digest of their files."""

import json
import os
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import wordsens as ws
from tests.maps.tiny_models import model_of, save_tiny, tokenizer
from wordsens.errors import InputError
from wordsens.models.embedding import load_encoder
from wordsens.models.load import as_model
from wordsens.models.model_files import model_digest
from wordsens.models.pretrained import load_text_model
from wordsens.text.hub import HubAnswer

TEXTS = ["the film was good", "the film was not good and not bad", "very long"]


def expected(pool=lambda states: states.mean(dim=1), **changes):
    """The vectors of TEXTS, from the own forward pass of a tiny BERT."""
    model = model_of("bert", **changes)
    with torch.no_grad():
        states = [model(**tokenizer()(text, return_tensors="pt"))[0] for text in TEXTS]
    return torch.cat([pool(each) for each in states]).double()


class Runs:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return type(self.path).touch, (self.path,)


def without_weights(folder, content):
    (folder / "model.safetensors").unlink()


def with_a_hole(folder, content):
    del content["encoder.layer.1.output.dense.bias"]
    save_file(content, folder / "model.safetensors", metadata={"format": "pt"})


def cut_off(folder, content):
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])


def with_code(folder, content):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "custom", "auto_map": {"AutoConfig": "code.C", "AutoModel": "code.C"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text("open('ran', 'w')")


def pickled_code(folder, content):
    without_weights(folder, content)
    torch.save(
        {"embeddings.word_embeddings.weight": Runs(folder / "ran")}, folder / "pytorch_model.bin"
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (with_a_hole, "1 tensors are missing, the first is 'encoder.layer.1.output.dense.bias'"),
        (without_weights, "it cannot be loaded"),
        (cut_off, "it cannot be loaded"),
        (with_code, "it cannot be loaded"),
        (pickled_code, "it cannot be loaded"),
    ],
)
def test_a_folder_whose_model_cannot_be_loaded(tiny_bert, tmp_path, monkeypatch, damage, message):
    """Incomplete or damaged weights; code that comes with a model is not run."""
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    damage(tmp_path, load_file(tmp_path / "model.safetensors"))
    with pytest.raises(InputError) as caught:
        load_text_model(str(tmp_path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


def close(found, vectors):
    """Attention in one kernel and in steps differ by float32's rounding."""
    torch.testing.assert_close(found, vectors, rtol=0, atol=5e-6)


def test_pickled_weights_are_read(tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model_of("bert").state_dict(), tmp_path / "pytorch_model.bin")
    close(as_model(tmp_path).encode(TEXTS), expected())


@pytest.mark.parametrize("answer", [HubAnswer.MISSING, HubAnswer.UNREACHABLE])
def test_a_name_that_the_hub_does_not_give(answer, monkeypatch):
    monkeypatch.setattr("wordsens.models.model_files.ask_hub", lambda name, kind: answer)
    with pytest.raises(InputError, match=f"it is not on this machine, and {answer.value}"):
        load_text_model("no-such-owner/no-such-model")


@pytest.mark.parametrize(
    ("kind", "pool"), [("llama", "last"), ("qwen2", "last"), ("bert", "mean"), ("t5", "mean")]
)
def test_the_usual_pool_and_the_dtype(save, kind, pool):
    folder = save(kind, "AutoModelForCausalLM" if pool == "last" else "AutoModel")
    assert as_model(folder).name == f"{folder} ({pool})"
    assert ws.TransformerFeatures.from_pretrained(folder, layer=2).name == f"{folder} layer 2"
    for source in (folder, (model_of(kind), tokenizer())):
        loaded = load_text_model(source, dtype=torch.float64)
        assert (loaded.dtype, loaded.row_dtype) == (torch.float64, torch.float64)


def test_a_causal_architecture_that_attends_both_ways_has_the_mean():
    model = model_of("llama", "AutoModelForCausalLM", is_causal=False)
    assert as_model((model, tokenizer())).pool == "mean"


def test_the_head_is_that_of_the_configuration(save):
    phi = ws.TransformerFeatures.from_pretrained(
        save("qwen2", "AutoModelForCausalLM"), output="probabilities", pool="last"
    )
    (text,) = phi.embed(TEXTS[0])
    ids = phi.model.tokenizer(TEXTS[0], return_tensors="pt")["input_ids"]
    logits = model_of("qwen2", "AutoModelForCausalLM")(ids).logits[0, -1]
    torch.testing.assert_close(phi(text), logits.softmax(dim=0), rtol=0, atol=1e-6)
    with pytest.raises(InputError, match=r"names no classifier or language model \(BertModel\)"):
        ws.TransformerFeatures.from_pretrained(save(), output="logits")


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("sentence_transformers.models.Pooling", r"\(TypeError\)"),
        ("mine.Own", "trust_remote_code=True and pass the object; on the command line, [^;]*$"),
    ],
)
def test_modules_that_the_library_cannot_load_are_refused(save, kind, remedy, tmp_path):
    folder = save()
    first = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    second = {"idx": 1, "name": "1", "path": "1_Own", "type": kind}
    for name, content in (
        ("modules.json", json.dumps([first, second])),
        ("mine.py", "raise RuntimeError('the code was run')"),
    ):
        (tmp_path / name).write_text(content)
    shutil.copytree(tmp_path, folder, dirs_exist_ok=True)
    for load in (
        as_model,
        ws.check,
        lambda name: ws.TransformerFeatures.from_pretrained(name, pool="own"),
    ):
        with pytest.raises(InputError, match=rf"sentence-transformers cannot load .*{remedy}"):
            load(folder)


def test_a_model_without_its_tokenizers_files_is_refused(tmp_path):
    """transformers makes a tokenizer of special tokens alone: every word would be [UNK]."""
    model_of("bert").save_pretrained(tmp_path)
    with pytest.raises(
        InputError, match=r"knows no word: its files \(tokenizer.json, or vocab.txt"
    ):
        load_text_model(tmp_path)


def test_weights_on_the_meta_device_are_refused():
    with pytest.raises(InputError, match="on the meta device, where they have no numbers"):
        as_model((model_of("bert").to("meta"), tokenizer()))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ((model_of("bert"), tokenizer()), {"revision": "main"}, "`revision` .* for an object"),
        (len, {"pool": "mean"}, "`pool` .* needs a transformer's states"),
        (__file__, {}, "there is no model folder"),
    ],
)
def test_options_that_do_not_fit_are_refused(model, options, message):
    with pytest.raises(InputError, match=message):
        as_model(model, **options)


def test_a_revision_of_a_folder_and_a_classifier_as_an_embedding_are_refused(save):
    folder = save("bert", "AutoModelForSequenceClassification")
    with pytest.raises(InputError, match=r"`revision` \(='main'\) needs a name"):
        as_model(folder, revision="main")
    with pytest.raises(InputError, match="is a classifier of 2 labels, not an embedding"):
        as_model(folder)
    assert as_model(folder, pool="mean").encode(TEXTS).shape == (3, 16)


@pytest.fixture
def model_folder(tmp_path):
    """A model_folder with the files of a model, as far as a digest goes."""
    files = {
        "config.json": '{"a": 1}',
        "model.safetensors": "weights",
        "tokenizer.json": '{"a": 1}',
        "vocab.txt": "a",
        "modules.json": json.dumps(
            [{"path": "1_Pooling", "type": "Pooling"}, {"path": "", "type": "Transformer"}]
        ),
        "1_Pooling/config.json": '{"a": 1}',
        "README.md": "read me",
        "other/notes.json": "{}",
    }
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "other").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    return tmp_path


DECIDING = (
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "vocab.txt",
    "modules.json",
    "1_Pooling/config.json",
)


@pytest.mark.parametrize("name", DECIDING)
def test_every_deciding_file_counts(model_folder, name):
    before = model_digest(str(model_folder))
    # Other bytes of the same number, and the old time of change put back.
    seen, content = (model_folder / name).stat(), (model_folder / name).read_bytes()
    changed = (
        content.replace(b"Pooling", b"POOLING") if name == "modules.json" else content.swapcase()
    )
    (model_folder / name).write_bytes(changed.replace(b"1_POOLING", b"1_Pooling"))
    assert (model_folder / name).stat().st_size == seen.st_size
    os.utime(model_folder / name, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert model_digest(str(model_folder)) != before


def test_files_that_decide_nothing_and_the_place_do_not_count(model_folder, tmp_path_factory):
    before = model_digest(str(model_folder))
    (model_folder / "README.md").write_text("other")
    (model_folder / "pytorch_model.bin").write_text("pickled")
    assert model_digest(str(model_folder)) == before
    # Of a module behind the pooling sentence-transformers reads pickled weights, too.
    (model_folder / "1_Pooling" / "pytorch_model.bin").write_text("pickled")
    before, first = model_digest(str(model_folder)), before
    assert before != first
    moved = tmp_path_factory.mktemp("elsewhere") / "model"
    model_folder.rename(moved)
    assert model_digest(str(moved)) == before


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A cache of the hub with two revisions of one model, of which the branch main is the first."""
    from huggingface_hub import constants

    root = tmp_path / "hub" / "models--someone--tiny"
    for revision, name, layers in (("a" * 40, "main", 3), ("b" * 40, "v2", 2)):
        save_tiny(root / "snapshots" / revision, "bert", num_hidden_layers=layers)
        (root / "refs").mkdir(exist_ok=True)
        (root / "refs" / name).write_text(revision)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    # Without a network every request is tried for half a minute.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return "someone/tiny"


@pytest.mark.parametrize(("revision", "layers"), [(None, 3), ("main", 3), ("v2", 2), ("b" * 40, 2)])
def test_a_revision_of_a_name_on_the_hub(hub, revision, layers):
    options = {"revision": revision, "local_files_only": True}
    vectors = expected(num_hidden_layers=layers)
    close(as_model(hub, **options).encode(TEXTS), vectors)
    phi = ws.TransformerFeatures.from_pretrained(hub, pool="mean", **options)
    close(phi.encode(TEXTS), vectors)
    assert load_encoder(hub, **options).layers == layers


@pytest.mark.parametrize("local_files_only", [True, False])
def test_what_stands_behind_the_pooling_comes_from_the_hub_too(hub, tmp_path, local_files_only):
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    place = str(tmp_path / "hub" / "models--someone--tiny" / "snapshots" / ("a" * 40))
    modules = [Transformer(place), Pooling(16, "cls"), Dense(16, 2)]
    model = library.SentenceTransformer(modules=modules, device="cpu")
    model.save_pretrained(place)
    found = as_model(hub, local_files_only=local_files_only).encode(TEXTS)
    np.testing.assert_allclose(found, model.encode(TEXTS), rtol=0, atol=1e-5)


def test_modules_that_another_program_left_out_of_the_cache_are_brought(hub, tmp_path, monkeypatch):
    """transformers alone caches weights and no modules: the pooling would be guessed."""
    import huggingface_hub

    from wordsens.models import model_files

    place = tmp_path / "hub" / "models--someone--tiny" / "snapshots" / ("a" * 40)
    asked = []
    download = huggingface_hub.snapshot_download

    def downloaded(name, *, local_files_only, **options):
        if not local_files_only:
            asked.append(name)
            kinds = {"": "Transformer", "1_Pooling": "Pooling"}
            modules = [
                {
                    "idx": at,
                    "name": str(at),
                    "path": path,
                    "type": f"sentence_transformers.models.{kind}",
                }
                for at, (path, kind) in enumerate(kinds.items())
            ]
            (place / "modules.json").write_text(json.dumps(modules))
            (place / "1_Pooling").mkdir()
            settings = {"word_embedding_dimension": 16, "pooling_mode_cls_token": True}
            (place / "1_Pooling" / "config.json").write_text(json.dumps(settings))
        return download(name, local_files_only=True, **options)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", downloaded)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *given, **options: None)
    monkeypatch.setattr(model_files, "ask_hub", lambda *_: model_files.HubAnswer.FOUND)
    for _ in range(2):
        found = as_model(hub).encode(TEXTS)
        close(found, expected(lambda states: states[:, 0]))
    assert asked == [hub]  # the second time all is known
