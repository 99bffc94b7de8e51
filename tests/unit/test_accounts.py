"""Quotas: what still fits."""

import pytest

from rag_resources.core.messages import Message
from rag_resources.core.quotas import MEGABYTE, Account, Quota, Usage


def account(quota: Quota, notes: int = 0, size_bytes: int = 0) -> Account:
    return Account("ana", quota, Usage(notes, size_bytes))


def test_what_is_added_counts_until_the_limit() -> None:
    own = account(Quota(notes=3, size_bytes=100), notes=1, size_bytes=40)

    assert own.add(notes=1, size_bytes=60) is None
    assert own.usage == Usage(2, 100)
    assert own.add(notes=1) is None
    assert own.add(notes=1) == Message.QUOTA_NOTES.format(tenant="ana", most=3)
    assert own.add(size_bytes=1) == Message.QUOTA_SIZE.format(tenant="ana", most=100 / MEGABYTE)
    assert own.usage == Usage(3, 100)


def test_whoever_has_too_much_may_have_less() -> None:
    """Or as much, since the limit was lowered afterwards."""
    own = account(Quota(notes=1, size_bytes=10), notes=5, size_bytes=50)

    assert own.add(size_bytes=0) is None
    assert own.add(notes=-1, size_bytes=-20) is None
    assert own.usage == Usage(4, 30)
    assert own.add(notes=1, size_bytes=-1) is not None
    assert own.add(notes=-1, size_bytes=1) is not None


@pytest.mark.parametrize(
    ("quota", "limits"),
    [
        (Quota(), False),
        (Quota(questions_a_minute=5, upload_hours=24), False),
        (Quota(notes=0), True),
        (Quota(size_bytes=0), True),
    ],
)
def test_only_limits_of_contents_are_counted(quota: Quota, limits: bool) -> None:
    assert quota.limits_contents is limits


def test_without_limits_everything_fits() -> None:
    assert account(Quota()).add(notes=10**9, size_bytes=10**12) is None
