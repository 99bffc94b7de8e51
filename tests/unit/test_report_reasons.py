"""The page's references to the list of reasons."""

from rag_resources.reporting.reasons import Reason, referred

SHORT = Reason(1, "notas caducadas desde entonces: 1", ("a",))
LONG = Reason(2, "han cambiado en 2025-06: notas; notas caducadas desde entonces: 1", ("b", "c"))
LINKS = {
    reason.number: f'<a href="#reason-{reason.number}">motivo {reason.number}</a>'
    for reason in (SHORT, LONG)
}


def test_a_link_stands_for_an_explanation_and_the_rest_is_escaped() -> None:
    said = referred(f"<b> obsoleta: {SHORT.explanation}. Entonces: pasa", (SHORT, LONG))
    assert said == f"&lt;b&gt; obsoleta: {LINKS[1]}. Entonces: pasa"
    assert referred(SHORT.explanation, (SHORT, LONG)) == LINKS[1]
    assert referred("<b>", ()) == "&lt;b&gt;"


def test_only_whole_explanations_are_referred_to() -> None:
    """Not the end of a longer one, nor the beginning of another figure."""
    assert referred(f"no: {LONG.explanation}", (SHORT, LONG)) == f"no: {LINKS[2]}"
    assert referred(f"no: {LONG.explanation}", (SHORT,)) == f"no: {LONG.explanation}"
    assert referred(f"no: {SHORT.explanation}2", (SHORT,)) == f"no: {SHORT.explanation}2"
