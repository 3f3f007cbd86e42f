"""Turns fresh namespaces into a node: called by `supervisor`, which runs in its own mount, pid and network namespaces.

Nothing here touches the host. What the node's programs write to fixed places lands in private file systems and
disappears with the last process; the network has no uplink, so no packet can leave.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from tests.cluster.layout import COVERED, NODE_IP, SERVICE_CIDR

# The kubelet sets these, and they belong to the whole machine: let it write to plain files instead.
GUARDED_SYSCTLS: Final = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
RESOLV_CONF: Final = Path("/etc/resolv.conf")
NETWORK: Final = f"""
link set lo up
link add kube0 type bridge
addr add {NODE_IP}/24 dev kube0
link set kube0 up
route add {SERVICE_CIDR} dev kube0
"""  # The route makes cluster IPs routable from the node; iptables rewrites them before they leave.
NETWORK_SYSCTLS: Final = ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables")


def cover_host_folders() -> None:
    """Hide /run and /var: pod logs, CNI results, container sockets and network namespaces go there."""
    for folder in COVERED:
        _mount("--types", "tmpfs", "tmpfs", str(folder))
    # Volumes that the kubelet mounts later must show up in running containers; still private to these namespaces.
    _mount("--make-rshared", "/")


def guard_sysctls() -> None:
    """Put a plain file over each setting that the kubelet would change on the host."""
    for index, name in enumerate(GUARDED_SYSCTLS):
        setting, substitute = Path("/proc/sys", name), Path("/run", f"sysctl-{index}")
        if setting.exists():
            substitute.write_text(setting.read_text())
            _mount("--bind", str(substitute), str(setting))


def cut_name_resolution(resolv_conf: Path) -> None:
    """Let the daemons ask `resolv_conf`; the host's name servers would be named in every pull error."""
    if RESOLV_CONF.exists():  # else it pointed into /run, and the default is what `resolv_conf` says anyway
        _mount("--bind", str(resolv_conf), str(RESOLV_CONF))


def make_network() -> None:
    """Give the namespace a loopback, a bridge with the node's address, and forwarding."""
    subprocess.run(["ip", "-batch", "-"], input=NETWORK, text=True, check=True)
    for name in NETWORK_SYSCTLS:
        setting = Path("/proc/sys/net", name)
        if setting.exists():
            setting.write_text("1")


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)
