"""What serves, beside the files of the configurations."""

from datetime import UTC, datetime

from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig
from rag_resources.languages.messages import _
from rag_resources.serving.serving import unlike_its_file
from rag_resources.store.promotions import Promotion


def test_what_serves_is_told_apart_from_the_file_of_its_name() -> None:
    """With the fields that differ; nothing if they are the same."""
    served = RetrievalConfig(model="m", top_k={"final": 5})
    moment = datetime(2025, 1, 1, tzinfo=UTC)
    stored = served.model_dump(mode="json")
    promotion = Promotion("mia", stored, served.config_hash, "m", None, moment, None)

    def files(config: RetrievalConfig) -> dict[str, NamedConfiguration]:
        return {"mia": NamedConfiguration(name="mia", description="La mía", retrieval=config)}

    assert unlike_its_file(promotion, files(served)) is None
    edited = RetrievalConfig(model="m", top_k={"final": 10})
    assert unlike_its_file(promotion, files(edited)) == _(
        "“{name}” serves in another version than that of its file ({changes}); its last figures "
        "may be of either. “rag run” chooses among those of the files, so it may replace it; to "
        "keep it, undo the change in its file."
    ).format(name="mia", changes="top_k.final 5 → 10")
    assert unlike_its_file(promotion, {}) == _(
        "“{name}”, which serves, is in no file. “rag run” chooses among those of the files, so it "
        "may replace it."
    ).format(name="mia")
