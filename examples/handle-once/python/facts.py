"""What an event is about: a later event makes an earlier one stale only where both are about the same fact."""

BY_TYPE = {
    "route.available": "route",
    "route.unavailable": "route",
    "route.moved": "route",
    "receiver.events_dropped": "notice",
    "upstream.record_too_large": "notice",
    "upstream.cursor_expired": "notice",
    "intentwatch.suspension_ended": "notice",
    "intentwatch.storage_truncated": "notice",
    "intentwatch.quote_domain_unproven": "notice",
    "intentwatch.large_removal": "notice",
    "intentwatch.storage_restored": "notice",
    "intentwatch.clock_jumped": "notice",
    "intentwatch.clock_differs": "notice",
    "intentwatch.test": "notice",
}

BY_WORD = {
    "updated": "update",
    "step_failed": "update",
    "error": "update",
    "refund_sent": "update",
    "verified": "proof",
    "disputed": "proof",
    "unproven": "proof",
    "overdue": "reminder",
    "expiring": "reminder",
    "expired": "reminder",
}


def fact_of(event):
    """The kind of the fact, and its name, which distinguishes the facts of one subject."""
    data = event["data"]
    word = event["type"].partition(".")[2]
    fact = BY_TYPE.get(event["type"])
    if fact is None:
        fact = "status" if _is_about_status(data, word) else BY_WORD.get(word, "notice")
    if fact == "proof":
        return fact, f"proof:{(data.get('proof') or {}).get('payment', '')}"
    if fact in ("update", "notice"):
        return fact, f"{fact}:{word}"
    return fact, fact


def has_record(name):
    """Whether events about this fact have a new record. Those about other facts repeat it."""
    return name == "status" or name.startswith("update:")


def _is_about_status(data, word):
    # The name alone does not decide it: `quote.expired` comes from the clock while the quote is `active`, and from the
    # upstream with the status `expired`.
    status = (data.get("status") or "").lower()
    return status == word or status != (data.get("previousStatus") or "").lower()
