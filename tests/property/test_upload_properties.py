"""Uploads under idempotency keys, repeated in any order."""

from pathlib import Path
from uuid import UUID, uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.core.errors import ConflictError
from rag_resources.database.pool import Database
from rag_resources.documents.uploads import (
    SOURCE,
    check_upload,
    register,
)
from rag_resources.files import LocalFiles

# Every example has its own tenants and folder, and one database will do.
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

Body = tuple[str, str, str]
"""The text of a file, its name, and the title that the client gives it."""

bodies = st.tuples(
    st.sampled_from(["El acta.", "El plan."]),
    st.sampled_from(["acta.txt", "plan.txt"]),
    st.sampled_from(["", "El título"]),
)
requests = st.lists(
    st.tuples(
        st.sampled_from(["ana", "berta"]),
        st.sampled_from(["k1", "k2"]),
        bodies,
    ),
    max_size=12,
)


@one_database
@given(requests)
def test_property_52_one_idempotency_key_takes_effect_once_for_one_body(
    database: Database, tmp_path: Path, history: list[tuple[str, str, Body]]
) -> None:
    example = uuid4().hex
    files = LocalFiles(tmp_path / example)
    first: dict[tuple[str, str], Body] = {}
    documents: dict[tuple[str, str], UUID] = {}
    for owner, key, body in history:
        text, name, title = body
        content = text.encode()
        own = (f"{owner}-{example}", key)
        upload = check_upload(content, name, tenant=own[0], title=title, idempotency_key=key)
        is_first = first.setdefault(own, body) == body
        try:
            document = register(database, files, upload, content)
        except ConflictError:
            assert not is_first
        else:
            assert is_first
            assert documents.setdefault(own, document) == document
    with database.transaction() as connection:
        rows = connection.execute(
            "SELECT tenant_id, split_part(address, '/', 2) FROM document_addresses "
            "WHERE source = %s AND tenant_id LIKE %s",
            (SOURCE, f"%-{example}"),
        ).fetchall()
    assert sorted(map(tuple, rows)) == sorted((own[0], body[1]) for own, body in first.items())
