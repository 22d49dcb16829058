"""Handles each event once in effect: its id is stored in the transaction of what is done for it, in SQLite."""

import json
import sqlite3
import time
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import facts

# In a project of your own, put the file beside the program.
TABLES = Path(__file__).parents[3] / "consumer" / "sql" / "sqlite.sql"


def open_database(path):
    """A connection whose transactions are begun by hand. One for each thread."""
    database = sqlite3.connect(path, timeout=10, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.executescript(TABLES.read_text())
    return database


class Claim(NamedTuple):
    """How an event relates to the events of its subject that were handled before."""

    # What the event is about: "status", "update", "proof", "reminder", "route" or "notice".
    fact: str
    # Whether a newer event about the same fact was handled before.
    is_stale: bool
    # Whether a newer status or update was: each of them has the whole record.
    is_record_stale: bool


def handle_once(database, event, handle, consumer="default"):
    """Runs `handle(database, event, claim)` in a transaction with the event's id.

    Returns "new", "stale" (a newer event about the same fact was handled before) or "handled" (this one was: nothing is
    run). Raises what `handle` raises; then nothing is stored.
    """
    # Others that write wait here: two deliveries of one event come one after the other.
    database.execute("BEGIN IMMEDIATE")
    try:
        claim = claim_event(database, event, consumer)
        if claim is not None:
            handle(database, event, claim)
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
    if claim is None:
        return "handled"
    return "stale" if claim.is_stale else "new"


def claim_event(database, event, consumer="default"):
    """Claims an event within a transaction that is open. None: it was handled before."""
    now_ms = int(time.time() * 1000)
    claimed = database.execute(
        "INSERT OR IGNORE INTO intentwatch_inbox (consumer, event_id, handled_at) VALUES (?, ?, ?)",
        (consumer, event["id"], now_ms),
    )
    if claimed.rowcount == 0:
        return None

    subject = event["data"]["subject"]["id"]
    row = database.execute(
        "SELECT newest FROM intentwatch_facts WHERE consumer = ? AND subject = ?", (consumer, subject)
    ).fetchone()
    newest = {} if row is None else json.loads(row[0])
    fact, name = facts.fact_of(event)
    position = position_of(event)
    claim = Claim(
        fact,
        is_stale=name in newest and is_newer(newest[name], position),
        is_record_stale=any(facts.has_record(other) and is_newer(newest[other], position) for other in newest),
    )
    if not claim.is_stale:
        newest[name] = position
    database.execute(
        "INSERT OR REPLACE INTO intentwatch_facts (consumer, subject, newest, handled_at) VALUES (?, ?, ?, ?)",
        (consumer, subject, json.dumps(newest), now_ms),
    )
    return claim


def position_of(event):
    """Where an event is among those of its subject. One without `epoch` is of the first epoch."""
    occurred = datetime.fromisoformat(event["timestamp"].replace("Z", "+00:00"))
    return {
        "epoch": event["data"].get("epoch", 0),
        "sequence": event["data"]["sequence"],
        "atMs": round(occurred.timestamp() * 1000),
    }


def is_newer(one, other):
    """Whether a position is newer than another: a restore begins a new epoch, in which sequences may begin anew.

    A daemon that sends no epochs does not count its restores: there what comes after a restore has a later time.
    """
    if one["epoch"] != other["epoch"]:
        return one["epoch"] > other["epoch"]
    return one["sequence"] > other["sequence"] and (one["epoch"] > 0 or one["atMs"] >= other["atMs"])
