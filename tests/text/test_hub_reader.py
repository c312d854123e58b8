"""Data sets of the library `datasets`: saved in a folder, or from the hub, which is stood in for here."""

import datasets
import pytest

from wordsens.errors import InputError
from wordsens.text import Document, read_documents
from wordsens.text.hub import HubAnswer, ask_hub


def data(texts, labels, names=("neg", "pos")):
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=list(names)),
            "extra": datasets.Value("int64"),
        }
    )
    columns = {"text": texts, "label": labels, "extra": list(range(len(texts)))}
    return datasets.Dataset.from_dict(columns, features=features)


@pytest.fixture
def quiet():
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def hub(monkeypatch):
    """A hub with one data set; what it is asked for is written down."""
    asked = []

    def load_dataset(name, configuration=None, *, split):
        asked.append((name, configuration, split, datasets.config.HF_HUB_OFFLINE))
        if split != "train":
            raise ValueError(f"Unknown split \"{split}\". Should be one of ['train'].\nmore")
        return data(["bad<br />film", "good film", "unlabelled"], [0, 1, -1])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr("wordsens.text.hub.ask_hub", lambda name, kind: HubAnswer.FOUND)
    return asked


class TestSaved:
    def test_one_data_set(self, tmp_path, quiet):
        data(["bad", "good"], [0, 1]).save_to_disk(tmp_path / "mine")
        assert read_documents(tmp_path / "mine") == [Document("bad", -1, "mine:1"), Document("good", 1, "mine:2")]
        with pytest.raises(InputError, match=r"`split` \(='test'\) cannot be chosen"):
            read_documents(tmp_path / "mine", split="test")

    def test_splits(self, tmp_path, quiet):
        splits = datasets.DatasetDict(train=data(["good"], [1]), test=data(["bad"], [0]))
        splits.save_to_disk(tmp_path / "mine")
        assert read_documents(tmp_path / "mine") == [Document("good", 1, "mine/train:1")]
        assert read_documents(tmp_path / "mine", split="test") == [Document("bad", -1, "mine/test:1")]
        with pytest.raises(InputError, match="has no split 'dev'; its splits are test, train; name one with split"):
            read_documents(tmp_path / "mine", split="dev")

    def test_classes_that_are_no_sentiments(self, tmp_path, quiet):
        data(["x"], [0], names=("World", "Sports")).save_to_disk(tmp_path / "news")
        with pytest.raises(InputError, match="news:1: the label 'World' is not understood"):
            read_documents(tmp_path / "news")
        assert read_documents(tmp_path / "news", labels=False) == [Document("x", None, "news:1")]


class TestHub:
    def test_imdb(self, hub):
        assert read_documents("imdb") == [
            Document("bad film", -1, "hub:stanfordnlp/imdb/train:1"),
            Document("good film", 1, "hub:stanfordnlp/imdb/train:2"),
            Document("unlabelled", None, "hub:stanfordnlp/imdb/train:3"),
        ]
        assert hub == [("stanfordnlp/imdb", None, "train", False)]

    def test_without_a_network_the_cache_is_used_at_once(self, hub, monkeypatch):
        monkeypatch.setattr("wordsens.text.hub.ask_hub", lambda name, kind: HubAnswer.UNREACHABLE)
        assert len(read_documents("imdb")) == 3
        assert hub == [("stanfordnlp/imdb", None, "train", True)]
        assert datasets.config.HF_HUB_OFFLINE is False


class TestAskHub:
    @pytest.mark.parametrize("kind", ["model", "dataset"])
    def test_its_answers(self, kind, monkeypatch):
        import httpx2
        from huggingface_hub import HfApi
        from huggingface_hub.errors import RepositoryNotFoundError

        answers = {"there": None, "gone": RepositoryNotFoundError, "down": ConnectionError}

        def info(self, name, *, timeout):
            assert timeout == 10
            if answers[name] is RepositoryNotFoundError:
                raise RepositoryNotFoundError(
                    "not found", response=httpx2.Response(404, request=httpx2.Request("GET", "x:"))
                )
            if answers[name] is not None:
                raise answers[name]

        monkeypatch.setattr(HfApi, f"{kind}_info", info)
        assert ask_hub("there", kind) is HubAnswer.FOUND
        assert ask_hub("gone", kind) is HubAnswer.MISSING
        assert ask_hub("down", kind) is HubAnswer.UNREACHABLE
