"""The names under which figures are shown, by the code's field; sentences are in `messages`."""

from collections.abc import Mapping

from rag_resources.languages.files import read
from rag_resources.languages.messages import operators

METRIC_WORDS = {
    "hit_rate_at_1": "Hit_Rate@1",
    "hit_rate_at_3": "Hit_Rate@3",
    "hit_rate_at_5": "Hit_Rate@5",
    "hit_rate_at_10": "Hit_Rate@10",
    "served_hit_rate": "Hit_Rate@final",
    "mrr": "MRR",
    "ndcg_at_10": "nDCG@10",
    "precision_at_10": "Precision@10",
    "recall_at_10": "Recall@10",
}
"""Names of the metrics as written in the field, the same in every language."""


def label(field: str, language: str | None = None) -> str:
    """Return the name of a field; a field without a name is shown as it is.

    A field may be derived from another one, such as `notes_before`; the longest prefix or suffix
    counts.

    Args:
        field: The field's name in the code.
        language: One of `OPERATORS`; None is the one that operators chose.
    """
    if field in METRIC_WORDS:
        return METRIC_WORDS[field]
    found = read(language or operators(), "labels.toml")
    if field in found["fields"]:
        return str(found["fields"][field])
    for affixes, begins in ((found["prefixes"], True), (found["suffixes"], False)):
        for affix in sorted(affixes, key=len, reverse=True):
            rest = field.removeprefix(f"{affix}_") if begins else field.removesuffix(f"_{affix}")
            if rest != field:
                return str(affixes[affix].format(name=label(rest, language)))
    return field


def stage_label(stage: str) -> str:
    """Return the name of a stage of a question; a stage without a name is shown as it is."""
    stages: Mapping[str, str] = read(operators(), "labels.toml")["stages"]
    return stages.get(stage, stage)
