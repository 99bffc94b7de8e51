"""How far down the relevant note of a missed question is."""

from rag_resources.core.configuration import RetrievalConfig, TopKConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import Evaluation, evaluate
from rag_resources.store.golden import write_golden
from tests.corpus import Corpus, Draft

OTHERS = 14
QUERY = "¿Quién vio a la gata?"


def evaluated(database: Database, *, depth: int) -> Evaluation:
    """One question, whose note comes after the others: it is long, and has its word once."""
    corpus = Corpus(database)
    drafts = [Draft(f"Gata, la gata y otra gata: {number}.") for number in range(OTHERS)]
    *_, note = corpus.fill([*drafts, Draft("Hoy llovió mucho y no salió nadie, ni la gata.")])
    with database.transaction() as connection:
        write_golden(connection, [GoldenEntry(QUERY, (note,), "Ana.", "factual", 1)], replace=True)
    config = RetrievalConfig(strategy="fulltext", top_k=TopKConfig(retrieval=depth, final=5))
    return evaluate(database, corpus.pipeline(), "palabras", config)


def test_a_missed_question_has_the_rank_of_its_note_as_deep_as_is_searched(
    database: Database,
) -> None:
    (found,) = evaluated(database, depth=50).outcomes
    assert (found.is_hit, found.deep_rank) == (False, OTHERS + 1)
    assert len(set(found.retrieved_note_ids)) == 10, "as before: no metric looks deeper"


def test_a_note_beyond_the_depth_has_no_rank(database: Database) -> None:
    (found,) = evaluated(database, depth=12).outcomes
    assert (found.is_hit, found.deep_rank) == (False, None)
