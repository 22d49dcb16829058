"""Handles each event once in effect: its id is stored in the transaction of what is done for it, in SQLite."""

import sqlite3
import time
from datetime import datetime
from pathlib import Path

# In a project of your own, put the file beside the program.
TABLES = Path(__file__).parents[3] / "consumer" / "sql" / "sqlite.sql"


def open_database(path):
    """A connection whose transactions are begun by hand. One for each thread."""
    database = sqlite3.connect(path, timeout=10, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.executescript(TABLES.read_text())
    return database


def handle_once(database, event, handle, consumer="default"):
    """Runs `handle(database, event, is_stale)` in a transaction with the event's id.

    Returns "new", "stale" (a newer event of the subject was handled before) or "handled" (this one was: nothing is run).
    Raises what `handle` raises; then nothing is stored.
    """
    # Others that write wait here: two deliveries of one event come one after the other.
    database.execute("BEGIN IMMEDIATE")
    try:
        verdict = claim(database, event, consumer)
        if verdict != "handled":
            handle(database, event, verdict == "stale")
        database.execute("COMMIT")
        return verdict
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def claim(database, event, consumer="default"):
    """Takes an event within a transaction that is open. "handled": it was taken before."""
    subject, sequence = event["data"]["subject"]["id"], event["data"]["sequence"]
    occurred_ms = round(datetime.fromisoformat(event["timestamp"].replace("Z", "+00:00")).timestamp() * 1000)
    now_ms = int(time.time() * 1000)
    taken = database.execute(
        "INSERT OR IGNORE INTO intentwatch_inbox (consumer, event_id, handled_at) VALUES (?, ?, ?)",
        (consumer, event["id"], now_ms),
    )
    if taken.rowcount == 0:
        return "handled"
    # Sequences begin anew where the daemon's Redis is lost, with later times: such an event is not stale.
    newer = database.execute(
        "SELECT 1 FROM intentwatch_subjects"
        " WHERE consumer = ? AND subject = ? AND sequence > ? AND occurred_at >= ?",
        (consumer, subject, sequence, occurred_ms),
    ).fetchone()
    if newer is not None:
        return "stale"
    database.execute(
        "INSERT OR REPLACE INTO intentwatch_subjects (consumer, subject, sequence, occurred_at, handled_at)"
        " VALUES (?, ?, ?, ?, ?)",
        (consumer, subject, sequence, occurred_ms, now_ms),
    )
    return "new"
