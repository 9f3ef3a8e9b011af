"""OpenRouter's SDK for Python, unmodified, with Kinora as its server."""

import os
import time

from openrouter import OpenRouter, errors

client = OpenRouter(
    api_key=os.environ["KINORA_API_KEY"], server_url=os.environ["KINORA_BASE_URL"]
)
videos = client.video_generation


def finished(job):
    while job.status not in ("completed", "failed"):
        time.sleep(0.3)
        job = videos.get_generation(job_id=job.id)
    return job


def main():
    job = videos.generate(
        model="kinora-b1", prompt="A kite over a windy beach", resolution="480p", seed=7
    )
    assert job.polling_url.endswith(f"/v1/videos/{job.id}"), job
    done = finished(job)
    assert done.status == "completed" and len(done.unsigned_urls) == 1, done
    film = videos.get_video_content(job_id=done.id).read()
    assert film[4:8] == b"ftyp", film[:16]

    # Its own name for the length is refused before there is a task, with the name to use.
    try:
        videos.generate(model="kinora-b1", prompt="A kite", duration=5)
        raise AssertionError("'duration' was taken")
    except errors.OpenRouterError as error:
        assert error.status_code == 400 and "Use 'seconds'" in error.body, error

    # A failed task says why.
    job = videos.generate(model="kinora-b1", prompt="A kite", size="1920x1080")
    cancelled = client.sdk_configuration.client.post(
        f"{job.polling_url}/cancel",
        headers={"Authorization": f"Bearer {os.environ['KINORA_API_KEY']}"},
    )
    assert cancelled.status_code == 200, cancelled.text
    failed = finished(job)
    assert failed.status == "failed" and "cancel" in failed.error, failed


main()
print("all passed")
