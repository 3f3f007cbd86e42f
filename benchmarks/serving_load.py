"""What a server costs, and how quickly it answers while it works: for `benchmarks/serving.py`.

A real `holmes serve` on the recorded demo cluster asks a scripted provider through litellm, so that its memory is that
of real investigations.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from holmes.assets import demo_recording
from tests.support.command_line import Home, provider_config
from tests.support.openai_server import Body, OpenAIServer, Reply, Scripted, call

KEY = "the-key-of-the-load"
ROUNDS = 4


@dataclass(slots=True, kw_only=True)
class Served:
    """Megabytes of the server, and seconds of answers while investigations ran.

    `first_page_seconds` is the slowest page while the very first investigation ran.
    """

    start_seconds: float = 0.0
    idle_megabytes: float = 0.0
    after_megabytes: float = 0.0
    page_seconds: list[float] = field(default_factory=list)
    health_seconds: list[float] = field(default_factory=list)
    first_page_seconds: float = 0.0
    running_at_once: int = 0
    seconds: float = 0.0


def replies(body: Body) -> Scripted:
    """Some rounds of tools, then the answer."""
    done = sum(message["role"] == "assistant" for message in body["messages"])
    if done >= ROUNDS:
        return Reply(text="The ConfigMap shop/payments-config is missing a key.", delay_seconds=0.3)
    look = call("kubernetes_diagnose", namespace="shop") if done else call("kubectl_get", kind="pod", namespace="shop")
    return Reply(tool_calls=(look,), delay_seconds=0.3)


@contextmanager
def served_demo() -> Iterator[Path]:
    """The kubeconfig of the recorded demo cluster, served by a process of its own."""
    command = [sys.executable, "-m", "holmes", "snapshot", "serve", "--port", "0", str(demo_recording())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "KUBECONFIG=" in line:
                yield Path(line.rpartition("KUBECONFIG=")[2].split()[0])
                break
    finally:
        process.terminate()
        process.communicate()


def measure_server(folder: Path, investigations: int = 20) -> Served:
    """Start a server, let it rest, give it so many investigations at once, and ask it meanwhile."""
    served, warm_up = Served(), Served()
    with OpenAIServer(replies) as provider, served_demo() as kubeconfig:
        home = Home.make(
            folder / "home",
            config=provider_config(provider.base_url),
            HOLMES_API_KEY=KEY,
            HOLMES_HOST="127.0.0.1",
            KUBECONFIG=str(kubeconfig),
            HOLMES_INVESTIGATION_CONCURRENCY=str(investigations),
        )
        began = time.monotonic()
        process = home.start("serve", "--port", "0")
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            served.start_seconds = time.monotonic() - began
            with httpx.Client(base_url=address, headers={"X-API-Key": KEY}, timeout=60) as client:
                time.sleep(3)
                served.idle_megabytes = _megabytes(process.pid)
                _investigate(client, 1, warm_up)  # the first one imports the model's library
                _investigate(client, investigations, served)
                served.after_megabytes = _megabytes(process.pid)
        finally:
            process.kill()
            process.communicate()
    served.first_page_seconds = max(warm_up.page_seconds)
    return served


def _investigate(client: httpx.Client, investigations: int, served: Served) -> None:
    began = time.monotonic()
    for number in range(investigations):
        question = {"question": f"why is checkout failing in namespace shop? ({number})"}
        client.post("/api/investigations", json=question).raise_for_status()
    with ThreadPoolExecutor(2) as pool:
        while True:
            page = pool.submit(_timed, client, "/")
            health = pool.submit(_timed, client, "/healthz")
            served.page_seconds.append(page.result())
            served.health_seconds.append(health.result())
            states = [each["state"] for each in client.get("/api/investigations?limit=100").json()["investigations"]]
            served.running_at_once = max(served.running_at_once, states.count("running"))
            if not {"queued", "running"} & set(states):
                assert set(states) == {"answered"}, states
                break
            time.sleep(0.1)
    served.seconds = time.monotonic() - began


def _timed(client: httpx.Client, path: str) -> float:
    """Seconds of one answer. Measured by curl: this process plays the provider meanwhile, and would wait for itself."""
    command = ["curl", "-sSf", "-o", "/dev/null", "-w", "%{time_total}", "-H", f"X-API-Key: {KEY}"]
    done = subprocess.run([*command, f"{client.base_url}{path}"], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _megabytes(pid: int) -> float:
    """Of both processes of the server, as a container is charged: pages that they share count once."""
    server = psutil.Process(pid)
    python = server.cmdline()
    processes = [server, *(each for each in server.children() if each.cmdline() == python)]
    assert len(processes) == 2, processes
    return sum(each.memory_full_info().pss for each in processes) / 1e6
