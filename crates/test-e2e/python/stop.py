"""The official OpenAI SDK for Python over a stop of the service: it ends the process that it speaks to.

The SDK may not try anything twice, so that every broken connection fails the run.
"""

import os
import signal
import time

import openai
from openai import DefaultHttpxClient, OpenAI

client = OpenAI(
    base_url=os.environ["KINORA_BASE_URL"],
    api_key=os.environ["KINORA_API_KEY"],
    max_retries=0,
    http_client=DefaultHttpxClient(trust_env=False),
)


def create(seconds):
    return client.videos.create(
        model="kinora-b1", prompt="A slow train", seconds=seconds, extra_body={"resolution": "480p"}
    )


video, waiting = create("10"), create("2")
while client.videos.retrieve(video.id).status == "queued":
    time.sleep(0.02)
os.kill(int(os.environ["KINORA_PROCESS"]), signal.SIGTERM)

refused = None
while refused is None:
    # Until the signal has arrived, submits are taken.
    try:
        waiting = create("2")
    except openai.InternalServerError as error:
        refused = error
assert (refused.status_code, refused.code) == (503, "shutting_down"), refused
assert int(refused.response.headers["retry-after"]) > 0

assert client.videos.retrieve(waiting.id).status == "queued"
assert len(client.videos.list().data) >= 2
client.videos.delete(waiting.id)
done = client.videos.poll(video.id)
assert done.status == "completed", done
assert client.videos.download_content(video.id).read()[4:8] == b"ftyp"
print("all passed")
