"""Kills a process with SIGKILL at the moment when it has written a row and not committed it."""

import subprocess
import sys
from pathlib import Path

import psycopg

from tests.waiting import wait_until

_ROOT = Path(__file__).parents[1]
_STOP = """
    CREATE FUNCTION stop_here() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
    CREATE TRIGGER stop_here AFTER INSERT ON {} FOR EACH STATEMENT EXECUTE FUNCTION stop_here()"""
_WAITING = """
    SELECT FROM pg_locks AS l INNER JOIN pg_database AS d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()"""


def kill_at_insert(url: str, table: str, script: str) -> None:
    """Run a script in a process of its own, and kill it when it has inserted into a table.

    Args:
        url: Of the database; the script gets it as `sys.argv[1]`.
        table: Which; not one into which something else is inserted meanwhile.
        script: In Python.
    """
    with psycopg.connect(url, autocommit=True) as watcher:
        watcher.execute(_STOP.format(table))  # type: ignore[arg-type] - a name from a test
        with psycopg.connect(url) as holder:
            holder.execute("SELECT pg_advisory_xact_lock(1)")
            process = subprocess.Popen([sys.executable, "-c", script, url], cwd=_ROOT)
            try:
                wait_until(lambda: watcher.execute(_WAITING).fetchone() is not None, 120)
            finally:
                process.kill()
                process.wait()
        watcher.execute("DROP FUNCTION stop_here CASCADE")
