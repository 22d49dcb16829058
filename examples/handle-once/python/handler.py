"""Handles an event of any kind. For any order of the events, the tables are the same in the end."""

# The facts of the events, a table for each kind of fact. `effects` has one row for each event that was handled.
TABLES = """
CREATE TABLE IF NOT EXISTS subjects (subject TEXT PRIMARY KEY, status TEXT, destination_tx TEXT);
CREATE TABLE IF NOT EXISTS proofs (subject TEXT, payment TEXT, verdict TEXT, tx_hash TEXT, PRIMARY KEY (subject, payment));
CREATE TABLE IF NOT EXISTS reminders (subject TEXT PRIMARY KEY, reminder TEXT, status TEXT);
CREATE TABLE IF NOT EXISTS routes (subject TEXT PRIMARY KEY, status TEXT, output TEXT);
CREATE TABLE IF NOT EXISTS notices (event_id TEXT PRIMARY KEY, subject TEXT, type TEXT);
CREATE TABLE IF NOT EXISTS effects (event_id TEXT NOT NULL, subject TEXT NOT NULL);
"""


def handle(database, event, claim):
    """Does what an event requests: written with this connection, it is stored together with the event's id."""
    data, subject = event["data"], event["data"]["subject"]["id"]
    word = event["type"].partition(".")[2]
    database.execute("INSERT INTO effects VALUES (?, ?)", (event["id"], subject))

    # A status and an update have the whole record. An update that overtakes a status has the newer record, not its status.
    if claim.fact in ("status", "update") and not claim.is_record_stale:
        destination = data.get("transfer", {}).get("destination", {})
        database.execute(
            "INSERT INTO subjects (subject, destination_tx) VALUES (?, ?)"
            " ON CONFLICT (subject) DO UPDATE SET destination_tx = excluded.destination_tx",
            (subject, destination.get("txHash")),
        )
    if claim.is_stale:
        return
    if claim.fact == "status":
        database.execute(
            "INSERT INTO subjects (subject, status) VALUES (?, ?)"
            " ON CONFLICT (subject) DO UPDATE SET status = excluded.status",
            (subject, data["status"]),
        )
    elif claim.fact == "proof":
        proof = data.get("proof", {})
        database.execute(
            "INSERT OR REPLACE INTO proofs VALUES (?, ?, ?, ?)",
            (subject, proof.get("payment", ""), word, proof.get("txHash")),
        )
    elif claim.fact == "reminder":
        # It applies while the status of the subject is the one that it names.
        database.execute("INSERT OR REPLACE INTO reminders VALUES (?, ?, ?)", (subject, word, data["status"]))
    elif claim.fact == "route":
        output = data["record"].get("output")
        database.execute("INSERT OR REPLACE INTO routes VALUES (?, ?, ?)", (subject, data["status"], output))
    elif claim.fact == "notice":
        database.execute("INSERT INTO notices VALUES (?, ?, ?)", (event["id"], subject, event["type"]))
