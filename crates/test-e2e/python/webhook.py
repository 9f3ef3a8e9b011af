"""A webhook of Kinora, verified by the official OpenAI SDK and by the Standard Webhooks library, both unmodified.

The environment holds what a receiver has: SECRET, HEADERS (a JSON object) and BODY. A wrong secret, and a body with
one character changed, must not pass either.
"""

import base64
import json
import os

import openai
from openai import OpenAI
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

SECRET = os.environ["SECRET"]
HEADERS = json.loads(os.environ["HEADERS"])
BODY = os.environ["BODY"]
WRONG = "whsec_" + base64.b64encode(b"w" * 32).decode()


def unwrap(secret=SECRET, body=BODY):
    client = OpenAI(api_key="unused", webhook_secret=secret)
    return client.webhooks.unwrap(body, HEADERS)


def verify(secret=SECRET, body=BODY):
    return Webhook(secret).verify(body, HEADERS)


def refused(call, kind):
    try:
        call()
    except kind:
        return
    raise AssertionError("a webhook passed that must not")


event = unwrap()
sent = json.loads(BODY)
assert event.id == sent["id"] == HEADERS["webhook-id"], event
assert event.object == "event" and event.type == sent["type"], event
assert event.created_at == sent["created_at"], event
assert event.data.id == sent["data"]["id"], event
assert verify() == sent

changed = BODY.replace("event", "evens", 1)
for secret, body in [(WRONG, BODY), (SECRET, changed)]:
    refused(lambda: unwrap(secret, body), openai.InvalidWebhookSignatureError)
    refused(lambda: verify(secret, body), WebhookVerificationError)
print("all passed")
