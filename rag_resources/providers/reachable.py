"""Checks whether the model servers of the settings answer, for `rag doctor`."""

from urllib.parse import urlsplit

import httpx

TIMEOUT_S = 3.0


def answer_of(url: str, *, key: str = "") -> tuple[bool, str]:
    """Ask a server for its list of models, and return whether it gave one, and what it said.

    Args:
        url: Address of the list. Credentials in it are sent, but not returned.
        key: Sent as a bearer token, if not empty.

    Returns:
        Whether it answered with success; its status, or the error's own words.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.get(url, headers=headers, timeout=TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return False, " ".join(str(error).split())
    return answer.is_success, f"HTTP {answer.status_code}"


def without_credentials(url: str) -> str:
    """Return an address without its credentials, which may be shown."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
