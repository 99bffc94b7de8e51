"""Messages in other words. It imports no module that takes messages at import; those come after."""

from string import Formatter

from rag_resources.languages.messages import wording

SPANISH = wording("es")


def placeholders(template: str) -> list[str]:
    """The placeholders of a template, with their format, in order."""
    parts = Formatter().parse(template)
    return [f"{{{name}:{spec}}}" if spec else f"{{{name}}}" for _, name, spec, _ in parts if name]


def other_wording(sign: str) -> dict[str, str]:
    """Every message in other words, its placeholders in another order."""
    literal = sign.replace("{", "{{").replace("}", "}}")
    return {
        code: f"{literal}. {' '.join(reversed(placeholders(template)))} .{literal}"
        for code, template in SPANISH.items()
    }
