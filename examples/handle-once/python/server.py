"""Receives webhooks and handles each event once: python3 server.py events.db

WEBHOOK_SECRET: one or several with spaces between. PORT: 8000 where it is left out.
"""

import os
import sys
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import handler
import inbox
import webhooks

KEYS = webhooks.read_secrets(os.environ.get("WEBHOOK_SECRET", "").split())
DATABASE = sys.argv[1] if len(sys.argv) > 1 else "events.db"
MAX_BODY_BYTES = 65_536


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > MAX_BODY_BYTES:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        try:
            event = webhooks.verify(KEYS, self.headers.items(), body, time.time())
        except webhooks.WebhookError as error:
            self.send_error(401, str(error))
            return
        try:
            with closing(inbox.open_database(DATABASE)) as database:
                verdict = inbox.handle_once(database, event, handler.handle)
        except Exception as error:
            print("failed", event["id"], error, flush=True)
            # The daemon sends it again.
            self.send_error(500)
            return
        print(verdict, event["id"], flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    with closing(inbox.open_database(DATABASE)) as database:
        database.executescript(handler.TABLES)
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 8000))), Handler)
    print("listening", server.server_address, flush=True)
    server.serve_forever()
