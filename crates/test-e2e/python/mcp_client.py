"""The official Python SDK of the Model Context Protocol, unmodified, as the client of `kinora mcp`.

Every function whose name begins with `check_` is one check; the first failure ends the run. All checks run twice: by the newest
protocol version of the SDK, and by the handshake of older clients.
"""

import asyncio
import json
import os
import struct
import tempfile
import zlib
from pathlib import Path

from mcp import Client, MCPError, StdioServerParameters

SMALL = {"prompt": "A kite over a windy beach", "seconds": 2, "size": "480x480", "seed": 7}
NO_VIDEO = "video_01k3v8r2n8p5c1w9g7d4x6m2ta"
TOOLS = {
    "create_video",
    "get_video",
    "wait_for_video",
    "list_videos",
    "cancel_video",
    "download_video",
    "list_models",
}


def server(**variables):
    names = ("KINORA_URL", "KINORA_API_KEY")
    env = {name: os.environ[name] for name in names} | variables
    return StdioServerParameters(command=os.environ["KINORA_PROGRAM"], args=["mcp"], env=env)


async def succeeded(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client, code, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert result.is_error, result.structured_content
    error = result.structured_content["error"]
    assert error["code"] == code and error["message"], error
    assert code in result.content[0].text
    return error


async def made(client, **arguments):
    task = await succeeded(client, "create_video", **arguments)
    assert task["status"] in ("queued", "in_progress", "completed"), task
    done = await succeeded(client, "wait_for_video", id=task["id"], timeout_seconds=600)
    assert done["status"] == "completed", done
    return done


def picture(path):
    """Writes a grey PNG of 320x320 pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 320, 320, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * 320) * 320)
    png = chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + png)


async def check_tools_and_schemas(client, folder):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == TOOLS, tools.keys()
    for tool in tools.values():
        assert tool.title and tool.description, tool
    schema = tools["create_video"].input_schema
    assert schema["required"] == ["prompt"], schema
    assert "path" in schema["properties"]["first_frame"]["description"]
    assert tools["get_video"].annotations.read_only_hint
    assert tools["download_video"].annotations.destructive_hint


async def check_models(client, folder):
    models = (await succeeded(client, "list_models"))["models"]
    first = models[0]
    assert first["id"] and first["capabilities"]["sizes"], first


async def check_create_wait_list_download(client, folder):
    seen = []

    async def note(progress, total, message):
        seen.append((progress, total, message))

    task = await succeeded(client, "create_video", model="kinora-a1", **SMALL)
    now = await succeeded(client, "wait_for_video", id=task["id"], timeout_seconds=0)
    assert now["id"] == task["id"], now
    arguments = {"id": task["id"], "timeout_seconds": 600}
    result = await client.call_tool("wait_for_video", arguments, progress_callback=note)
    done = result.structured_content
    assert done["status"] == "completed" and done["result_url"].startswith("http"), done
    values = [progress for progress, _, _ in seen]
    assert values and values == sorted(set(values)) and values[-1] == 100, seen
    assert seen[-1] == (100, 100, "completed 100 %"), seen
    assert (await succeeded(client, "get_video", id=task["id"]))["status"] == "completed"

    listed = (await succeeded(client, "list_videos", limit=1))["videos"]
    assert [video["id"] for video in listed] == [task["id"]], listed
    assert "result_url" not in listed[0], listed
    after = (await succeeded(client, "list_videos", after=task["id"]))["videos"]
    assert task["id"] not in [video["id"] for video in after], after

    path = folder / "kite.mp4"
    saved = await succeeded(client, "download_video", id=task["id"], path=str(path))
    data = path.read_bytes()
    assert data[4:8] == b"ftyp" and saved == {"id": task["id"], "path": str(path), "bytes": len(data)}
    path.write_bytes(b"mine")
    await refused(client, "file_exists", "download_video", id=task["id"], path=str(path))
    assert path.read_bytes() == b"mine"
    await succeeded(client, "download_video", id=task["id"], path=str(path), overwrite=True)
    assert path.read_bytes() == data
    other = str(folder / "kite.txt")
    await refused(client, "invalid_path", "download_video", id=task["id"], path=other)
    missing = folder / "none.mp4"
    await refused(client, "video_not_found", "download_video", id=NO_VIDEO, path=str(missing))
    assert not missing.exists() and os.listdir(folder) == ["kite.mp4"], os.listdir(folder)


async def check_pictures_of_the_disk(client, folder):
    day = folder / "day.png"
    picture(day)
    done = await made(client, first_frame=str(day), **SMALL)
    assert done["size"] == "480x480", done
    await made(client, reference_images=[str(day), str(day)], **SMALL)
    secret = folder / "secret.png"
    secret.write_text("-----BEGIN PRIVATE KEY-----")
    for wrong in (secret, folder, folder / "missing.png", "/dev/zero"):
        error = await refused(
            client, "invalid_reference", "create_video", first_frame=str(wrong), **SMALL
        )
        assert error["param"] == "first_frame" and str(wrong) in error["message"], error


async def check_refusals_are_results(client, folder):
    error = await refused(client, "invalid_value", "create_video", **SMALL | {"size": "1x1"})
    assert error["param"] == "size" and error["request_id"].startswith("req_"), error
    error = await refused(client, "invalid_arguments", "create_video", prompt="x", length=5)
    assert error["param"] == "length" and "seconds" in error["message"], error
    error = await refused(client, "model_not_found", "create_video", model="none", prompt="x")
    assert error["advice"] == "Call list_models.", error
    await refused(client, "video_not_found", "get_video", id=NO_VIDEO)
    try:
        await client.call_tool("paint_video", {})
    except MCPError as error:
        assert "paint_video" in error.error.message, error
    else:
        raise AssertionError("an unknown tool was called")


async def check_cancel(client, folder):
    slow = {"model": "kinora-a1", "prompt": "A ship crosses an ocean", "seconds": 15, "resolution": "480p"}
    task = await succeeded(client, "create_video", **slow)
    cancelled = await succeeded(client, "cancel_video", id=task["id"])
    assert (cancelled["status"], cancelled["error"]["code"]) == ("failed", "cancelled"), cancelled
    await succeeded(client, "cancel_video", id=task["id"])


async def check_a_wrong_key_and_a_missing_service(mode):
    async with Client(server(KINORA_API_KEY="kinora_wrong"), mode=mode) as client:
        error = await refused(client, "invalid_api_key", "list_models")
        assert "KINORA_KEY" in error["advice"], error
    async with Client(server(KINORA_URL="http://127.0.0.1:1"), mode=mode) as client:
        error = await refused(client, "service_unreachable", "list_models")
        assert "KINORA_URL" in error["advice"], error


async def run(mode):
    checks = [
        check_tools_and_schemas,
        check_models,
        check_create_wait_list_download,
        check_pictures_of_the_disk,
        check_refusals_are_results,
        check_cancel,
    ]
    async with Client(server(), mode=mode) as client:
        for check in checks:
            with tempfile.TemporaryDirectory() as folder:
                await check(client, Path(folder))
            print(f"{mode}: {check.__name__}")
    await check_a_wrong_key_and_a_missing_service(mode)


for mode in ("auto", "legacy"):
    asyncio.run(run(mode))
print("all passed")
