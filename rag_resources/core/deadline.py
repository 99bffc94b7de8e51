"""Deadlines: only the arithmetic. Enforcing them belongs in `resilience.deadlines`."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time after which a caller no longer waits.

    Attributes:
        expires_at: In seconds of `clock`.
        clock: Monotonic, in seconds: `time.monotonic`, or a test's clock.
    """

    expires_at: float
    clock: Callable[[], float]

    @classmethod
    def after(cls, duration_ms: float, clock: Callable[[], float]) -> "Deadline":
        """Return the deadline `duration_ms` from now."""
        return cls(clock() + duration_ms / 1000, clock)

    @property
    def remaining_ms(self) -> float:
        """Milliseconds left; 0 once it has passed."""
        return max(0.0, (self.expires_at - self.clock()) * 1000)

    @property
    def remaining_s(self) -> float:
        """Seconds left; 0 once it has passed."""
        return self.remaining_ms / 1000

    @property
    def expired(self) -> bool:
        """Whether it has passed."""
        return self.remaining_ms == 0.0

    def within(self, duration_ms: float) -> "Deadline":
        """Return the earlier of this deadline and the one `duration_ms` from now."""
        return Deadline(min(self.expires_at, self.clock() + duration_ms / 1000), self.clock)
