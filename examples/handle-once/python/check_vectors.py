"""Runs consumer/vectors.json: python3 check_vectors.py ../../../consumer/vectors.json

Prints what differs, and ends with 1 where something does. That a body was changed on its way (`body_changed`) is a better
word for `signature_mismatch`, which this program does not check for.
"""

import base64
import itertools
import json
import sys
from contextlib import closing

import facts
import handler
import inbox
import webhooks

SAME = {"body_changed": "signature_mismatch"}


def verdict_of(vector):
    headers, body = vector["headers"], base64.b64decode(vector["body"])
    try:
        webhooks.verify(webhooks.read_secrets(vector["secrets"]), headers, body, vector["now"])
        return "accepted"
    except webhooks.WebhookError as error:
        return error.code


def orders_of(life):
    """For every order of the events of a life the tables that it ends with. Each event comes twice."""
    with closing(inbox.open_database(":memory:")) as database:
        database.executescript(handler.TABLES)
        for order in itertools.permutations(life["events"]):
            for event in order:
                inbox.handle_once(database, event, handler.handle)
            twice = [inbox.handle_once(database, event, handler.handle) for event in order]
            tables = {
                table: [list(row) for row in database.execute(f"SELECT * FROM {table} ORDER BY 1, 2")]
                for table in life["tables"]
            }
            yield tables, all(verdict == "handled" for verdict in twice)
            for table in ["effects", "intentwatch_inbox", "intentwatch_facts", *life["tables"]]:
                database.execute(f"DELETE FROM {table}")


def main(path):
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    checked, wrong = 0, 0

    def check(name, found, expected):
        nonlocal checked, wrong
        checked += 1
        if found != expected:
            wrong += 1
            print(f"{name}: found {found}, expected {expected}")

    for vector in vectors["verification"]:
        verdict = vector["verdict"]
        check(vector["name"], verdict_of(vector), SAME.get(verdict, verdict))
    for case in vectors["handling"]:
        with closing(inbox.open_database(":memory:")) as database:
            for number, delivery in enumerate(case["deliveries"], start=1):
                found = inbox.handle_once(database, delivery["event"], lambda *_: None)
                check(f"{case['name']}, delivery {number}", found, delivery["verdict"])
    for vector in vectors["facts"]:
        check(vector["name"], facts.fact_of(vector["event"])[1], vector["fact"])
    orders = 0
    for life in vectors["lives"]:
        ends = list(orders_of(life))
        orders += len(ends)
        other = next((end for end in ends if end != (life["tables"], True)), ends[0])
        check(life["name"], other, (life["tables"], True))
    print(f"{orders} orders")
    print(f"{checked} checked, {wrong} wrong")
    return 0 if wrong == 0 and checked > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
