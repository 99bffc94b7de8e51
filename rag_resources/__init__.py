"""Everything that the assets use, from the pure core to the HTTP API and the Dagster resource.

Imports point down; `docs/architecture.md` draws the layers. Importing the package loads the rules
of each language into the core, because the core reads no files.
"""

from rag_resources.core import rules
from rag_resources.languages.files import LANGUAGES, names, read

_notes = LANGUAGES[0]
_files = names(_notes, "rules")
rules.bind(
    {name.removesuffix(".toml"): read(_notes, f"rules/{name}") for name in _files},
    {language: read(language, "rules/questions.toml") for language in LANGUAGES},
    {language: read(language, "rules/words.toml") for language in LANGUAGES},
)
