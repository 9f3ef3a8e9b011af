"""The official OpenAI SDK for Python, unmodified, against a running Kinora.

Every function whose name begins with `check_` is one check; the first failure ends the run.
It refuses to patch the SDK: requests are only counted, by an event hook of its HTTP client.
"""

import os
import tempfile
import time
import urllib.request

import openai
from openai import DefaultHttpxClient, OpenAI

BASE_URL = os.environ["KINORA_BASE_URL"]
KEY = os.environ["KINORA_API_KEY"]
PROMPT = "A kite over a windy beach"
SMALL = {"resolution": "480p"}
NO_TASK = "video_01k3v8r2n8p5c1w9g7d4x6m2ta"

requests = []
client = OpenAI(
    base_url=BASE_URL,
    api_key=KEY,
    http_client=DefaultHttpxClient(event_hooks={"request": [requests.append]}, trust_env=False),
)


def create(on=client, model="kinora-b1", seconds="2", **more):
    extra_body = {**SMALL, **more.pop("extra_body", {})}
    return on.videos.create(
        model=model, prompt=PROMPT, seconds=seconds, extra_body=extra_body, **more
    )


def refused(kind, call, status, code):
    """Calls, and returns the error that the SDK made of the refusal."""
    try:
        call()
    except openai.APIStatusError as error:
        assert type(error) is kind, f"{type(error).__name__}, not {kind.__name__}: {error}"
        assert (error.status_code, error.code) == (status, code), error
        assert error.request_id and error.request_id.startswith("req_"), error.request_id
        assert error.type, error
        return error
    raise AssertionError(f"not refused: {code}")


def check_create_and_poll():
    video = client.videos.create_and_poll(
        model="kinora-a1", prompt=PROMPT, seconds="2", size="854x480"
    )
    assert (video.object, video.status, video.progress) == ("video", "completed", 100), video
    assert (video.model, video.seconds, video.size) == ("kinora-a1", "2", "854x480"), video
    assert video.error is None and video.prompt == PROMPT, video
    assert video.completed_at >= video.created_at and video.expires_at > video.completed_at
    assert video.result_url == video.url and video.url.startswith("http"), video
    assert video._request_id.startswith("req_")
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with without_proxy.open(video.result_url) as response:
        assert response.read()[4:8] == b"ftyp"


def check_download_of_all_variants():
    video = client.videos.create_and_poll(
        model="kinora-a1", prompt=PROMPT, seconds="2", extra_body=SMALL
    )
    with tempfile.TemporaryDirectory() as folder:
        for variant, magic, at in (
            ("video", b"ftyp", 4),
            ("thumbnail", b"WEBP", 8),
            ("spritesheet", b"\xff\xd8\xff", 0),
            ("last_frame", b"\xff\xd8\xff", 0),
        ):
            path = os.path.join(folder, variant)
            client.videos.download_content(video.id, variant=variant).write_to_file(path)
            with open(path, "rb") as file:
                data = file.read()
            assert data[at : at + len(magic)] == magic, (variant, data[:16])
        default = client.videos.download_content(video.id).read()
        with open(os.path.join(folder, "video"), "rb") as file:
            assert default == file.read()
        streamed = os.path.join(folder, "streamed")
        with client.videos.with_streaming_response.download_content(video.id) as response:
            assert response.headers["content-type"] == "video/mp4"
            response.stream_to_file(streamed)
        assert os.path.getsize(streamed) == len(default)


def check_further_fields_arrive_typed():
    video = create(
        model="kinora-a1",
        extra_body={
            "seed": 77,
            "generate_audio": False,
            "metadata": {"order": "17", "note": "two words"},
            "negative_prompt": "rain",
        },
    )
    sent = requests[-1].headers["content-type"]
    assert sent.startswith("multipart/form-data"), sent
    assert video.seed == 77, video
    assert video.metadata == {"order": "17", "note": "two words"}, video
    done = client.videos.poll(video.id)
    assert done.status == "completed" and done.has_audio is False, done


def check_json_instead_of_a_form():
    video = create(extra_headers={"Content-Type": "application/json"}, extra_body={"seed": 5})
    assert requests[-1].headers["content-type"] == "application/json"
    assert video.seed == 5, video
    client.videos.delete(video.id)


def check_seconds_as_a_number():
    video = client.videos.create(
        model="kinora-b1", prompt=PROMPT, seconds=3, size="480x480", timeout=30
    )
    assert (video.seconds, video.size) == ("3", "480x480"), video
    client.videos.delete(video.id)


def check_lists_page_by_themselves():
    made = [create().id for _ in range(5)]
    newest_first = [video.id for video in client.videos.list(limit=2)]
    assert newest_first[:5] == made[::-1], newest_first
    oldest_first = [video.id for video in client.videos.list(limit=2, order="asc")]
    assert oldest_first == newest_first[::-1]
    page = client.videos.list(limit=2)
    assert page.has_more is True and page.has_next_page() and len(page.data) == 2
    assert page.get_next_page().data[0].id == made[2]
    for video_id in made:
        deleted = client.videos.delete(video_id)
        assert (deleted.id, deleted.deleted, deleted.object) == (video_id, True, "video.deleted")
    assert not {video.id for video in client.videos.list()} & set(made)


def check_models():
    assert {"kinora-a1", "kinora-b1"} <= {model.id for model in client.models.list()}
    assert client.models.retrieve("kinora-a1").owned_by == "kinora"


def check_bad_request():
    error = refused(openai.BadRequestError, lambda: create(model="sora-9"), 400, "model_not_found")
    assert error.param == "model" and "sora-9" in error.message, error.message
    long = lambda: client.videos.create(model="kinora-a1", prompt=PROMPT, seconds="99")
    assert refused(openai.BadRequestError, long, 400, "invalid_value").param == "seconds"
    extend = lambda: client.videos.extend(
        prompt=PROMPT, seconds="4", video=openai.omit, extra_body={"video": {"id": NO_TASK}}
    )
    refused(openai.BadRequestError, extend, 400, "unsupported_operation")
    upload = lambda: create(input_reference=("a.png", b"\x89PNG", "image/png"))
    error = refused(openai.BadRequestError, upload, 400, "file_upload_unsupported")
    assert error.param == "input_reference", error


def check_files():
    source = client.videos.create_and_poll(
        model="kinora-a1", prompt=PROMPT, seconds="2", extra_body=SMALL
    )
    picture = client.videos.download_content(source.id, variant="thumbnail").read()
    file = client.files.create(
        file=("day.webp", picture, "image/webp"),
        purpose="vision",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert (file.object, file.status, file.bytes) == ("file", "processed", len(picture)), file
    assert (file.filename, file.purpose) == ("day.webp", "vision"), file
    assert file.expires_at == file.created_at + 3600, file
    other = client.files.create(file=("b.webp", picture), purpose="user_data")
    assert [one.id for one in client.files.list(limit=1)] == [other.id, file.id]
    assert [one.id for one in client.files.list(purpose="vision")] == [file.id]
    assert client.files.retrieve(file.id) == file
    assert client.files.content(file.id).read() == picture
    by_id = {"input_reference": {"file_id": file.id}}
    videos = [create(extra_body={"first_frame": file.url}), create(extra_body=by_id)]
    deleted = client.files.delete(file.id)
    assert (deleted.id, deleted.object, deleted.deleted) == (file.id, "file", True), deleted
    for video in videos:
        assert client.videos.poll(video.id).status == "completed"
    for call in (client.files.retrieve, client.files.content, client.files.delete):
        refused(openai.NotFoundError, lambda: call(file.id), 404, "file_not_found")
    broken = lambda: client.files.create(file=("a.png", b"\x89PNG"), purpose="vision")
    error = refused(openai.BadRequestError, broken, 400, "unsupported_file")
    assert error.param == "file", error


def check_authentication():
    stranger = client.with_options(api_key="sk-wrong")
    refused(openai.AuthenticationError, lambda: stranger.videos.list(), 401, "invalid_api_key")
    reader = client.with_options(api_key=os.environ["KINORA_READ_KEY"])
    refused(openai.PermissionDeniedError, lambda: create(reader), 403, "scope_missing")


def check_not_found():
    for call in (client.videos.retrieve, client.videos.delete, client.videos.download_content):
        refused(openai.NotFoundError, lambda: call(NO_TASK), 404, "video_not_found")
    remix = lambda: client.videos.remix(NO_TASK, prompt=PROMPT)
    refused(openai.NotFoundError, remix, 404, "video_not_found")


def edit(video_id):
    """This SDK types `video={"id": …}`, but raises before it sends one: see the next check."""
    return client.videos.edit(
        prompt="The same in snow", video=openai.omit, extra_body={"video": {"id": video_id}}
    )


def check_objects_where_the_sdk_expects_files_never_leave_it():
    """When this fails the SDK was mended: use its own spelling here and in docs/api.md."""
    before = len(requests)
    for call in (
        lambda: client.videos.edit(prompt=PROMPT, video={"id": NO_TASK}),
        lambda: create(input_reference={"image_url": "https://example.com/a.png"}),
    ):
        try:
            call()
        except RuntimeError as error:
            assert "to be bytes" in str(error), error
        else:
            raise AssertionError("the SDK sends it now")
    assert len(requests) == before


def check_edit_and_remix():
    source = client.videos.create_and_poll(
        model="kinora-a1", prompt=PROMPT, seconds="2", extra_body=SMALL
    )
    for edited in (
        edit(source.id),
        client.videos.remix(source.id, prompt="The same at night"),
    ):
        assert edited.remixed_from_video_id == source.id, edited
        done = client.videos.poll(edited.id)
        assert (done.status, done.model) == ("completed", "kinora-b1"), done
        assert (done.size, done.seconds) == (source.size, source.seconds), done
        assert client.videos.download_content(done.id).read()[4:8] == b"ftyp"
    unknown = lambda: edit(NO_TASK)
    error = refused(openai.BadRequestError, unknown, 400, "edit_source_not_usable")
    assert error.param == "video", error


def check_draft_and_final():
    draft = create(model="kinora-a1", extra_body={"draft": True, "resolution": "720p"})
    draft = client.videos.poll(draft.id)
    assert (draft.status, draft.size, draft.draft) == ("completed", "854x480", True), draft
    final = client.videos.create(
        model="kinora-a1", prompt=openai.omit, extra_body={"draft_task_id": draft.id}
    )
    final = client.videos.poll(final.id)
    assert (final.status, final.size) == ("completed", "1280x720"), final
    assert (final.draft_task_id, final.seed) == (draft.id, draft.seed), final


def check_automatic_duration():
    video = client.videos.create(
        model="kinora-b1", prompt=PROMPT, seconds="auto", extra_body=SMALL
    )
    assert video.seconds == "auto", video
    done = client.videos.poll(video.id)
    assert done.status == "completed" and 2 <= int(done.seconds) <= 15, done


def check_references():
    """Nothing here is reachable; the SDK's spellings arrive, and the task says why it failed."""
    image = {"image_url": "http://127.0.0.1:8009/first.png"}
    for references in (
        {"extra_body": {"input_reference": image}},
        {"extra_body": {"reference_images": [image["image_url"]] * 2}},
    ):
        failed = client.videos.poll(create(**references).id)
        assert failed.status == "failed", failed
        assert failed.error.code == "reference_forbidden_address", failed


def check_conflicts_are_not_retried():
    done = client.videos.create_and_poll(
        model="kinora-b1", prompt=PROMPT, seconds="2", extra_body=SMALL
    )
    cancel = lambda video_id: client.post(f"/videos/{video_id}/cancel", cast_to=object)
    before = len(requests)
    refused(openai.ConflictError, lambda: cancel(done.id), 409, "not_cancellable")
    assert len(requests) == before + 1, "a final 409 was sent again"

    # Long enough not to end before.
    failed = create(model="kinora-a1", seconds="15")
    assert cancel(failed.id)["status"] == "failed"
    video = client.videos.poll(failed.id)
    assert (video.status, video.error.code) == ("failed", "cancelled"), video
    assert video.fail_reason == video.error.message, video
    before = len(requests)
    content = lambda: client.videos.download_content(failed.id)
    refused(openai.ConflictError, content, 409, "video_failed")
    assert len(requests) == before + 1, "a final 409 was sent again"


def check_content_is_waited_for():
    """409 `video_not_ready` is retried after its Retry-After, so an early download just waits."""
    patient = client.with_options(max_retries=20)
    video = create()
    assert patient.videos.download_content(video.id).read()[4:8] == b"ftyp"


def check_idempotency():
    headers = {"Idempotency-Key": f"order-{time.monotonic_ns()}"}
    body = {"seed": 3}
    first = create(extra_headers=headers, extra_body=body)
    again = create(extra_headers=headers, extra_body=body)
    assert first.id == again.id
    raw = client.videos.with_raw_response.create(
        model="kinora-b1",
        prompt=PROMPT,
        seconds="2",
        extra_headers=headers,
        extra_body={**SMALL, **body},
    )
    assert raw.headers["idempotent-replayed"] == "true" and raw.parse().id == first.id
    other = lambda: create(extra_headers=headers, extra_body={"seed": 4})
    refused(openai.UnprocessableEntityError, other, 422, "idempotency_key_reused")
    client.videos.delete(first.id)


def check_rate_limit():
    narrow = client.with_options(api_key=os.environ["KINORA_NARROW_KEY"], max_retries=0)
    running = narrow.videos.create(
        model="kinora-a1", prompt=PROMPT, seconds="15", size="1920x1080"
    )
    error = refused(openai.RateLimitError, lambda: create(narrow), 429, "queue_full")
    assert 1 <= int(error.response.headers["retry-after"]) <= 120
    narrow.videos.delete(running.id)


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            begun = time.monotonic()
            check()
            print(f"{name}: {time.monotonic() - begun:.1f} s")
    print("all passed")
