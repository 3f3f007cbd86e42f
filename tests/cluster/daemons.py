"""The command lines of the cluster's daemons, in the order of their start: data for `supervisor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.cluster.layout import INNER_ADDRESS, NODE_IP, NODE_NAME, POD_CIDR, SERVICE_CIDR

if TYPE_CHECKING:
    from tests.cluster.layout import Layout
    from tests.cluster.programs import Programs

ETCD: Final = "http://127.0.0.1:2379"


def containerd(layout: Layout) -> list[str]:
    """Return the command of the container runtime, which needs nothing else."""
    return ["containerd", "--config", f"{layout.run}/containerd.toml"]


def etcd(layout: Layout, programs: Programs) -> list[str]:
    """Return the command of the API server's store; it need not survive a crash, so it never syncs."""
    return [
        str(programs.path("etcd")),
        f"--data-dir={layout.run}/etcd",
        f"--listen-client-urls={ETCD}",
        f"--advertise-client-urls={ETCD}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--unsafe-no-fsync",
    ]


def api_server(layout: Layout, programs: Programs) -> list[str]:
    """Return the command of the API server; it waits for etcd by itself."""
    pki = layout.run / "pki"
    return [
        str(programs.path("kube-apiserver")),
        f"--etcd-servers={ETCD}",
        "--bind-address=0.0.0.0",
        f"--secure-port={INNER_ADDRESS[1]}",
        f"--advertise-address={NODE_IP}",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--token-auth-file={pki}/tokens.csv",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt",
        f"--kubelet-client-key={pki}/kubelet-client.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki}/service-accounts.key",
        f"--service-account-signing-key-file={pki}/service-accounts.key",
        "--allow-privileged=true",
    ]


def controller_manager(layout: Layout, programs: Programs) -> list[str]:
    """Return the command of the controllers; they give up unless the API server answers soon."""
    pki = layout.run / "pki"
    return [
        str(programs.path("kube-controller-manager")),
        *_kubeconfigs(layout, "controller-manager"),
        f"--service-account-private-key-file={pki}/service-accounts.key",
        f"--root-ca-file={pki}/ca.crt",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        "--use-service-account-credentials",
        f"--flex-volume-plugin-dir={layout.run}/kubelet/volume-plugins",
        # At the default of 20 calls a second it takes five seconds to start all controllers.
        "--kube-api-qps=500",
        "--kube-api-burst=500",
    ]


def scheduler(layout: Layout, programs: Programs) -> list[str]:
    """Return the command of the scheduler."""
    return [str(programs.path("kube-scheduler")), *_kubeconfigs(layout, "scheduler")]


def kubelet(layout: Layout, programs: Programs) -> list[str]:
    """Return the command of the node's agent; it needs containerd and all images, which it cannot pull."""
    return [
        str(programs.path("kubelet")),
        f"--config={layout.run}/kubelet.yaml",
        f"--kubeconfig={layout.kubeconfig('kubelet')}",
        f"--root-dir={layout.run}/kubelet",
        f"--cert-dir={layout.run}/pki",
        f"--hostname-override={NODE_NAME}",
        f"--node-ip={NODE_IP}",
    ]


def proxy(layout: Layout, programs: Programs) -> list[str]:
    """Return the command of the service proxy; the conntrack limits belong to the host and stay as they are."""
    return [
        str(programs.path("kube-proxy")),
        f"--kubeconfig={layout.kubeconfig('proxy')}",
        "--proxy-mode=iptables",
        f"--hostname-override={NODE_NAME}",
        f"--cluster-cidr={POD_CIDR}",
        f"--bind-address={NODE_IP}",
        "--metrics-bind-address=127.0.0.1:10249",
        "--healthz-bind-address=127.0.0.1:10256",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0",
        "--conntrack-tcp-timeout-close-wait=0",
        "--oom-score-adj=0",
    ]


def _kubeconfigs(layout: Layout, user: str) -> list[str]:
    kubeconfig = layout.kubeconfig(user)
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
    ]
