"""LiteLLM's proxy, unmodified, between the OpenAI SDK and Kinora."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings

from openai import OpenAI

BASE_URL, KEY = os.environ["KINORA_BASE_URL"], os.environ["KINORA_API_KEY"]
PROXY_KEY = "sk-proxy"
# Its start alone takes ten seconds of a processor, most of it imports.
START_SECONDS_MAX = 200
CONFIG = {
    "model_list": [
        {
            "model_name": "clip",
            "litellm_params": {
                "model": "openai/kinora-b1",
                "api_base": BASE_URL,
                "api_key": KEY,
            },
        }
    ],
    "general_settings": {"master_key": PROXY_KEY},
}


def start(folder, port):
    config = pathlib.Path(folder, "config.yaml")
    # JSON is YAML.
    config.write_text(json.dumps(CONFIG))
    proxy = [sys.executable, "-m", "litellm.proxy.proxy_cli", "--config", str(config)]
    # It would load its list of prices from the network.
    variables = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with open(pathlib.Path(folder, "log"), "wb") as log:
        return subprocess.Popen(
            [*proxy, "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, **variables},
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def wait_until_alive(proxy, port):
    for _ in range(START_SECONDS_MAX * 5):
        assert proxy.poll() is None, "the proxy has ended"
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness")
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the proxy does not start")


def main(port):
    warnings.simplefilter("ignore", DeprecationWarning)
    client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=PROXY_KEY)
    clip = {"model": "clip", "seconds": "2", "size": "854x480"}
    video = client.videos.create_and_poll(prompt="A kite over a windy beach", **clip)
    assert video.status == "completed", video
    assert client.videos.download_content(video.id).read()[4:8] == b"ftyp"
    with open(os.environ["KINORA_PICTURE"], "rb") as picture:
        second = client.videos.create_and_poll(
            prompt="The kite rises", input_reference=picture, **clip
        )
    assert second.status == "completed", second
    assert client.videos.remix(video.id, prompt="The same at night").status == "queued"


with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
    free.close()
    proxy = start(folder, port)
    try:
        wait_until_alive(proxy, port)
        main(port)
    except BaseException:
        print(pathlib.Path(folder, "log").read_text()[-4000:], file=sys.stderr)
        raise
    finally:
        proxy.terminate()
        proxy.wait()
print("all passed")
