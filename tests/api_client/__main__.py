"""Calls the API with a client that openapi-python-client has generated from its schema.

    make api-client API_URL=http://127.0.0.1:8000

The generated package is to be on PYTHONPATH; nothing of ours is imported. What an answer lacks, or
has beside its schema, fails where the generated code reads it.
"""

import sys
from http import HTTPStatus
from io import BytesIO
from uuid import UUID, uuid4

from api_de_brain_sync_rag_client import AuthenticatedClient
from api_de_brain_sync_rag_client.api.answers import (
    answer_v1_answers_post,
    give_v1_feedback_post,
)
from api_de_brain_sync_rag_client.api.documents import (
    delete_v1_documents_document_id_delete,
    list_all_v1_documents_get,
    show_v1_documents_document_id_get,
    upload_v1_documents_post,
)
from api_de_brain_sync_rag_client.api.evaluations import list_evaluations_v1_evaluations_get
from api_de_brain_sync_rag_client.api.golden_dataset import (
    add_v1_golden_dataset_post,
    delete_v1_golden_dataset_golden_id_delete,
    show_v1_golden_dataset_golden_id_get,
)
from api_de_brain_sync_rag_client.api.notes import (
    me_v1_me_get,
    show_v1_notes_note_id_get,
    tags_v1_tags_get,
)
from api_de_brain_sync_rag_client.api.openai import chat_v1_chat_completions_post
from api_de_brain_sync_rag_client.api.search import (
    query_api_v1_query_post,
    retrieve_v1_retrieve_post,
)
from api_de_brain_sync_rag_client.models import (
    AnswerRequest,
    BodyUploadV1DocumentsPost,
    ChatMessage,
    ChatMessageRole,
    ChatRequest,
    FeedbackBody,
    FeedbackBodyVerdict,
    FiltersInCamelCase,
    GoldenBody,
    Problem,
    QueryRequest,
    Search,
)
from api_de_brain_sync_rag_client.types import File

QUESTION = "¿qué pasó con la insulina durante el apagón?"


def check(*, is_met: bool, named: str) -> None:
    """End with the name of a check that fails."""
    if not is_met:
        sys.exit(f"failed: {named}")
    sys.stdout.write(f"ok: {named}\n")


def search(client: AuthenticatedClient) -> UUID:
    """Search, and return a note that was found."""
    body = Search(QUESTION, top_k=3, filters=FiltersInCamelCase(created_from="2000-01-01"))
    found = retrieve_v1_retrieve_post.sync(client=client, body=body)
    check(is_met=len(found.results) == 3, named="three passages")
    first = found.results[0]
    bounds = first.metadata.matched_chunk_bounds
    matched = first.expanded_content[bounds.start : bounds.end]
    check(is_met=matched == first.content, named="the bounds of a passage")
    check(is_met=set(found.metadata.stages.to_dict()) > {"search"}, named="the stages")
    simple = query_api_v1_query_post.sync(client=client, body=QueryRequest(QUESTION, top_k=1))
    check(is_met=len(simple.results) == 1, named="the simple query")
    wrong = retrieve_v1_retrieve_post.sync_detailed(
        client=client, body=Search(QUESTION, configuration="no_existe")
    )
    refused = isinstance(wrong.parsed, Problem) and wrong.status_code == HTTPStatus.BAD_REQUEST
    check(is_met=refused and bool(wrong.parsed.error), named="a problem")
    return first.note_id


def read(client: AuthenticatedClient, note_id: UUID) -> None:
    """Read a note, the tags, and who asks."""
    note = show_v1_notes_note_id_get.sync(note_id, client=client)
    check(is_met=note.id == note_id and bool(note.content), named="a note")
    gone = show_v1_notes_note_id_get.sync_detailed(uuid4(), client=client)
    check(is_met=gone.status_code == HTTPStatus.NOT_FOUND, named="no note")
    check(is_met=tags_v1_tags_get.sync(client=client, limit=5) is not None, named="tags")
    check(is_met=bool(me_v1_me_get.sync(client=client).tenant), named="who asks")


def answer(client: AuthenticatedClient) -> None:
    """Ask, judge the answer, and talk as OpenAI's clients do."""
    given = answer_v1_answers_post.sync(client=client, body=AnswerRequest(QUESTION))
    check(is_met=bool(given["sentences"]), named="an answer")
    thumb = FeedbackBody(UUID(given["answerId"]), FeedbackBodyVerdict.UP, citation=1)
    kept = give_v1_feedback_post.sync(client=client, body=thumb)
    check(is_met=kept.citation == 1, named="a thumb")
    message = ChatMessage(ChatMessageRole.USER, content=QUESTION)
    said = chat_v1_chat_completions_post.sync(client=client, body=ChatRequest("rag", [message]))
    check(is_met=bool(said["choices"][0]["message"]["content"]), named="a chat")


def write(client: AuthenticatedClient, note_id: UUID) -> None:
    """Add, read and delete a golden question and a document; list evaluations."""
    asked = {"query": f"¿Qué dice {uuid4()}?", "category": "factual", "difficulty": 1}
    golden = GoldenBody(**asked, relevant_note_ids=[note_id], expected_answer="Nada.")
    added = add_v1_golden_dataset_post.sync(client=client, body=golden)
    golden_id = UUID(added["id"])
    again = show_v1_golden_dataset_golden_id_get.sync(golden_id, client=client)
    check(is_met=again["query"] == asked["query"], named="a golden question")
    ended = delete_v1_golden_dataset_golden_id_delete.sync_detailed(golden_id, client=client)
    check(is_met=ended.status_code < HTTPStatus.BAD_REQUEST, named="its deletion")
    refused = add_v1_golden_dataset_post.sync_detailed(client=client, body=GoldenBody(**asked))
    check(is_met=isinstance(refused.parsed, Problem), named="a golden question without notes")
    text, key = f"Acta {uuid4()}.".encode(), uuid4().hex
    sent = [
        upload_v1_documents_post.sync(
            client=client,
            body=BodyUploadV1DocumentsPost(File(BytesIO(text), "acta.md")),
            idempotency_key=key,
        )
        for _ in range(2)
    ]
    check(is_met=sent[0].id == sent[1].id, named="an upload, twice under one key")
    shown = show_v1_documents_document_id_get.sync(sent[0].id, client=client)
    check(is_met=bool(shown.stages.to_dict()), named="its stages")
    listed = list_all_v1_documents_get.sync(client=client)
    check(is_met=sent[0].id in {row.id for row in listed.documents}, named="documents")
    gone = delete_v1_documents_document_id_delete.sync_detailed(sent[0].id, client=client)
    check(is_met=gone.status_code in (HTTPStatus.OK, HTTPStatus.NO_CONTENT), named="its deletion")
    rows = list_evaluations_v1_evaluations_get.sync(client=client, limit=1)
    check(is_met=len(rows.evaluations) <= 1, named="evaluations")


def main() -> None:
    """Call a server: its address, and a writer's key if it has keys."""
    address, key = (*sys.argv[1:], "ninguna")[:2]
    client = AuthenticatedClient(address, token=key, raise_on_unexpected_status=True, timeout=60)
    note = search(client)
    read(client, note)
    answer(client)
    write(client, note)


if __name__ == "__main__":
    main()
