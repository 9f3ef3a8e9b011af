"""LiteLLM as a library, unmodified, with Kinora as an OpenAI server."""

import os
import time

# It would load its list of prices from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402

SERVER = {
    "api_base": os.environ["KINORA_BASE_URL"],
    "api_key": os.environ["KINORA_API_KEY"],
    "custom_llm_provider": "openai",
}


def make(**fields):
    video = litellm.video_generation(
        model="openai/kinora-b1", seconds="2", size="854x480", **fields, **SERVER
    )
    while video.status not in ("completed", "failed"):
        time.sleep(0.3)
        video = litellm.video_status(video_id=video.id, **SERVER)
    assert video.status == "completed", video
    film = litellm.video_content(video_id=video.id, **SERVER)
    assert film[4:8] == b"ftyp", film[:16]
    return video


def main():
    first = make(prompt="A kite over a windy beach")
    with open(os.environ["KINORA_PICTURE"], "rb") as picture:
        make(prompt="The kite rises", input_reference=picture)
    listed = litellm.video_list(limit=2, **SERVER)["data"]
    assert [one["prompt"] for one in listed] == ["The kite rises", "A kite over a windy beach"]
    night = litellm.video_remix(video_id=first.id, prompt="The same at night", **SERVER)
    assert night.status == "queued", night


main()
print("all passed")
