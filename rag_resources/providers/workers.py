"""How the embedded models share the cores: one BLAS thread each, one worker thread per core.

Several BLAS threads in one matrix product wait for each other, and twice as long if another process
uses the cores. Independent products in separate worker threads do not.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from threadpoolctl import threadpool_limits


@cache
def limit_blas_threads() -> None:
    """Limit every BLAS library of this process to one thread, permanently."""
    threadpool_limits(limits=1, user_api="blas")


@cache
def worker_threads() -> ThreadPoolExecutor:
    """Return the worker threads of this process, one per core it may use."""
    return ThreadPoolExecutor(core_count(), thread_name_prefix="embedding")


# Threads do not survive a fork.
os.register_at_fork(after_in_child=worker_threads.cache_clear)


def core_count() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
