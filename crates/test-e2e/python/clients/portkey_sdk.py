"""Portkey's SDK for Python, unmodified, with Kinora as its gateway. It knows Sora's sizes and lengths alone, so the
clips have those."""

import os
import time

from portkey_ai import Portkey

client = Portkey(
    base_url=os.environ["KINORA_BASE_URL"],
    provider="openai",
    Authorization=f"Bearer {os.environ['KINORA_API_KEY']}",
)
videos = client.videos
CLIP = {"model": "kinora-b1", "seconds": "4", "size": "1280x720"}


def main():
    video = videos.create(prompt="A kite over a windy beach", **CLIP)
    while video.status not in ("completed", "failed"):
        time.sleep(0.3)
        video = videos.retrieve(video.id)
    assert video.status == "completed", video
    film = videos.download_content(video.id).read()
    assert film[4:8] == b"ftyp", film[:16]
    with open(os.environ["KINORA_PICTURE"], "rb") as picture:
        done = videos.create_and_poll(prompt="The kite rises", input_reference=picture, **CLIP)
    assert done.status == "completed", done
    listed = videos.list(limit=2)
    assert [one.id for one in listed.data] == [done.id, video.id], listed
    assert videos.delete(done.id).deleted is True


main()
print("all passed")
