"""Verifies Intentwatch's webhooks: both kinds of signatures, from the bytes as they came."""

import base64
import binascii
import hashlib
import hmac
import json
import re

import ed25519

TOLERANCE_SECONDS = 300


class WebhookError(Exception):
    """Why a webhook is refused. `code` is one of consumer/vectors.json."""

    def __init__(self, code, detail):
        super().__init__(f"{code}: {detail}")
        self.code = code


def read_secrets(texts):
    """The keys of `whsec_…` and `whpk_…`, several while one is being replaced. Raises ValueError where one is none."""
    keys = []
    for number, text in enumerate(texts, start=1):
        prefix, _, encoded = text.partition("_")
        data = _decoded(encoded)
        if prefix == "whsec" and data is not None and 24 <= len(data) <= 64:
            keys.append(("v1", data))
        elif prefix == "whpk" and data is not None and len(data) == 32:
            keys.append(("v1a", data))
        else:
            raise ValueError(f"secret {number} is none: expected whsec_ or whpk_ and base64")
    if not keys:
        raise ValueError("found no webhook secret, expected at least one")
    return keys


def verify(keys, headers, body, now):
    """The event in a webhook. Raises WebhookError where it is not signed with one of the keys.

    `headers` are pairs of name and value in the order in which they came, `body` is the bytes, `now` Unix seconds.
    """
    webhook_id = _one(headers, "webhook-id")
    timestamp = _one(headers, "webhook-timestamp")
    signatures = " ".join(_values(headers, "webhook-signature")).split()
    if not signatures:
        raise WebhookError("header_missing", "found no webhook-signature")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise WebhookError("timestamp_invalid", "expected webhook-timestamp to be Unix seconds")

    given = [signature.partition(",")[::2] for signature in signatures[:20]]
    versions = {version for version, _ in keys}
    if not any(version in versions for version, _ in given):
        raise WebhookError("signature_kind", f"expected a signature of version {' or '.join(sorted(versions))}")
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    # Several signatures and several secrets while one is being replaced: one pair that fits is enough.
    if not any(_fits(key, text, signed) for key in keys for version, text in given if version == key[0]):
        raise WebhookError("signature_mismatch", "no signature fits: another secret, or a changed body")

    # Only after the signature: the time of a forged webhook has no meaning.
    age = int(now) - int(timestamp)
    if age > TOLERANCE_SECONDS:
        raise WebhookError("timestamp_too_old", f"signed {age} s ago")
    if age < -TOLERANCE_SECONDS:
        raise WebhookError("timestamp_too_new", f"signed {-age} s in the future")
    return _event(body, webhook_id)


def _fits(key, text, signed):
    version, data = key
    if version == "v1":
        expected = base64.b64encode(hmac.new(data, signed, hashlib.sha256).digest())
        return hmac.compare_digest(text.encode(), expected)
    signature = _decoded(text)
    return signature is not None and ed25519.verify(data, signature, signed)


def _event(body, webhook_id):
    try:
        event = json.loads(body.decode("utf-8"))
        subject, sequence = event["data"]["subject"]["id"], event["data"]["sequence"]
        texts = [event["id"], event["type"], event["timestamp"], subject]
    except (ValueError, KeyError, TypeError) as error:
        raise WebhookError("event_invalid", f"the body is no event ({type(error).__name__})") from None
    if not all(isinstance(text, str) for text in texts) or type(sequence) is not int:
        raise WebhookError("event_invalid", "the body is no event")
    if event["id"] != webhook_id:
        raise WebhookError("event_invalid", "the body is another event than webhook-id names")
    return event


def _values(headers, name):
    return [value for key, value in headers if key.lower() == name]


def _one(headers, name):
    values = _values(headers, name)
    if not values or values[0] == "":
        raise WebhookError("header_missing", f"found no {name}")
    if len(values) > 1 or "," in values[0]:
        raise WebhookError("header_repeated", f"found several {name}, expected one")
    return values[0]


def _decoded(text):
    """The bytes of base64 as an encoder writes it; None for anything else."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode() == text else None
