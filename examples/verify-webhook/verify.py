import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_SECONDS = 300


def verify(secret, headers, body):
    """The event in a webhook. Raises ValueError when it is not signed with the secret.

    `body` is the bytes as they came.
    """
    webhook_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(int(time.time()) - int(timestamp)) > TOLERANCE_SECONDS:
        raise ValueError("the timestamp is not of the last five minutes")

    key = base64.b64decode(secret.removeprefix("whsec_"))
    if len(key) < 24:
        raise ValueError("the secret is too short")
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    # Several signatures while a secret is being changed: one that fits is enough.
    for signature in headers.get("webhook-signature", "").split(" "):
        version, _, given = signature.partition(",")
        if version == "v1" and hmac.compare_digest(given.encode(), expected):
            return json.loads(body)
    raise ValueError("no signature fits")


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            event = verify(os.environ.get("WEBHOOK_SECRET", ""), self.headers, body)
        except ValueError as error:
            self.send_error(401, str(error))
            return
        # The same event can come twice: do nothing for an id that you have handled.
        print(event["id"], event["type"], event["data"]["subject"]["id"], flush=True)
        self.send_response(204)
        self.end_headers()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 8000))), Handler)
    print("listening", server.server_address, flush=True)
    server.serve_forever()
