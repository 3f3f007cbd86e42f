"""The signals that common exporters offer, as data: a further exporter is a few more entries.

cAdvisor, kube-state-metrics, kubelet, node-exporter, JVM (Micrometer), Go, Node.js, PostgreSQL, MySQL, Redis, Kafka,
RabbitMQ, ingress-nginx, CoreDNS, etcd and the API server. Requests are in `signals`, because their metrics have many
names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.signals import Signal

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE_CPU: Final = "CPU of the node"
NEIGHBOUR: Final = "CPU cores of a neighbour"
_CONTAINER: Final = '{$pods,container!="",container!="POD"}'
_POD_TOO: Final = '{$pods,container!="POD"}'
"""Containers, and whole pods: some container runtimes give the kubelet nothing else."""
_BY: Final = "by (pod, container)"
_LIMITS: Final = f"max {_BY} (kube_pod_container_resource_limits{{$pods,resource="
_REFUSED: Final = "at the maximum, new connections are refused"
_FULL_VOLUME: Final = "a full volume fails writes"
_DISK: Final = (
    '{$instances,fstype!~"tmpfs|overlay|squashfs|ramfs|iso9660|nfs.*|ceph.*",'
    'mountpoint!~"/boot.*|.*/kubelet/(pods|plugins)/.*|/mnt.*|/media.*"}'
)
"""The file systems of the node itself: those of volumes are mounted below the folder of the kubelet."""


def _place(query: str) -> Iterator[tuple[str, str]]:
    """Yield the query about the pods, and the query about their namespace, for exporters in pods of their own."""
    for matchers, by in (("$pods", "pod"), ("$namespace", "instance")):
        yield query.replace("$place", matchers), by


def _maximum(name: str, used: str, most: str) -> Iterator[Signal]:
    # One exporter can read several servers.
    for query, by in _place(f"sum by (BY, server) ({used}{{$place}}) / max by (BY, server) ({most}{{$place}} > 0)"):
        yield Signal(name=name, query=query.replace("BY", by), kind="share", high=0.9, meaning=_REFUSED)


def _excess(name: str, value: str, high: float, meaning: str) -> Iterator[Signal]:
    for query, by in _place(f"max by (BY) ({value})"):
        yield Signal(name=name, query=query.replace("BY", by), kind="excess", high=high, meaning=meaning)


def _backlog(name: str, query: str) -> Iterator[Signal]:
    for each, _ in _place(query):
        yield Signal(name=name, query=each, kind="delay", high=100, meaning="consumers are slower than producers")


_CONTAINERS: Final = (
    Signal(
        name="CPU throttling",
        query=f"sum {_BY} (rate(container_cpu_cfs_throttled_periods_total{_POD_TOO}[5m])) / "
        f"sum {_BY} (rate(container_cpu_cfs_periods_total{_POD_TOO}[5m]))",
        kind="share",
        high=0.25,
        meaning="the container stops in these periods, because it has used up its CPU limit",
    ),
    Signal(
        name="memory of its limit",
        query=f'max {_BY} (container_memory_working_set_bytes{_CONTAINER}) / {_LIMITS}"memory"}})',
        kind="share",
        high=0.9,
        meaning="at its limit, the container is killed; caches of files that the kernel can free count as well",
    ),
    Signal(
        name="CPU of its limit",
        query=f'max {_BY} (rate(container_cpu_usage_seconds_total{_CONTAINER}[5m])) / {_LIMITS}"cpu"}})',
        kind="share",
        high=0.95,
        meaning="at its limit, the container is throttled",
    ),
    Signal(
        name="restarts in 10 minutes",
        high=0.5,
        query=f"sum {_BY} (increase(kube_pod_container_status_restarts_total{{$pods}}[10m]))",
        kind="count",
        meaning="the container was restarted",
    ),
    Signal(
        name="dropped packets per second",
        high=1.0,
        query="sum by (pod) (rate(container_network_receive_packets_dropped_total{$pods}[5m]))",
        kind="count",
        meaning="the network of the pod drops packets",
    ),
)
_VOLUMES: Final = (
    Signal(
        name="usage of the volume",
        query="max by (namespace, persistentvolumeclaim) (kubelet_volume_stats_used_bytes{$namespace}) / "
        "max by (namespace, persistentvolumeclaim) (kubelet_volume_stats_capacity_bytes{$namespace}) "
        "* on (namespace, persistentvolumeclaim) group_right() max by (namespace, persistentvolumeclaim, pod) "
        "(kube_pod_spec_volumes_persistentvolumeclaims_info{$pods})",
        kind="share",
        high=0.9,
        meaning=_FULL_VOLUME,
    ),
    Signal(
        name="usage of the volume",
        query="max by (persistentvolumeclaim) (kubelet_volume_stats_used_bytes{$namespace}) / "
        "max by (persistentvolumeclaim) (kubelet_volume_stats_capacity_bytes{$namespace})",
        kind="share",
        high=0.9,
        meaning=_FULL_VOLUME,
    ),
)
_PROGRAMS: Final = (
    Signal(
        name="heap of the JVM",
        query='sum by (pod, container) (jvm_memory_used_bytes{$pods,area="heap"}) / '
        'sum by (pod, container) (jvm_memory_max_bytes{$pods,area="heap"} > 0)',
        kind="share",
        high=0.95,
        meaning="the JVM spends its time in garbage collection, and fails with OutOfMemoryError at the maximum",
    ),
    Signal(
        name="time in garbage collection",
        query="sum by (pod, container) (rate(jvm_gc_pause_seconds_sum{$pods}[5m]))",
        kind="share",
        high=0.15,
        meaning="the program does nothing else in this share of the time",
    ),
    Signal(
        name="connections of the pool",
        query="max by (pod, pool) (hikaricp_connections_active{$pods}) / "
        "max by (pod, pool) (hikaricp_connections_max{$pods} > 0)",
        kind="share",
        high=0.95,
        meaning="requests wait until another one returns its connection",
    ),
    Signal(
        name="connections of the pool",
        query="max by (pod, db_name) (go_sql_in_use_connections{$pods}) / "
        "max by (pod, db_name) (go_sql_max_open_connections{$pods} > 0)",
        kind="share",
        high=0.95,
        meaning="requests wait until another one returns its connection",
    ),
    Signal(
        name="file descriptors of the maximum",
        query="max by (pod, container, instance) (process_open_fds{$pods}) / "
        "max by (pod, container, instance) (process_max_fds{$pods} > 0)",
        kind="share",
        high=0.9,
        meaning="at the maximum, files and connections cannot be opened",
    ),
    Signal(
        name="seconds of lag of the event loop",
        query="max by (pod) (nodejs_eventloop_lag_seconds{$pods})",
        kind="excess",
        high=0.5,
        meaning="long computations block all other requests of the process",
    ),
)
_SERVERS: Final = (
    *_maximum("connections of the maximum of PostgreSQL", "pg_stat_activity_count", "pg_settings_max_connections"),
    *_maximum(
        "connections of the maximum of MySQL",
        "mysql_global_status_threads_connected",
        "mysql_global_variables_max_connections",
    ),
    *_maximum("connections of the maximum of Redis", "redis_connected_clients", "redis_config_maxclients"),
    *_excess(
        "seconds of the longest transaction",
        "pg_stat_activity_max_tx_duration{$place}",
        300,
        "its locks block others, and dead rows are kept",
    ),
    *(
        each
        for metric in ("pg_replication_lag_seconds", "pg_replication_lag", "mysql_slave_status_seconds_behind_master")
        for each in _excess("seconds of replication lag", f"{metric}{{$place}}", 60, "the replica shows old data")
    ),
    *_excess(
        "evicted keys per second", "rate(redis_evicted_keys_total{$place}[5m])", 1, "Redis has reached its memory limit"
    ),
    *_excess(
        "memory alarm of RabbitMQ",
        "rabbitmq_alarms_memory_used_watermark{$place}",
        1,
        "RabbitMQ blocks all publishers",
    ),
    *_backlog("messages that wait in the queue", "sum by (queue) (rabbitmq_queue_messages_ready{$place})"),
    *_backlog("lag of the consumer group", "sum by (consumergroup, topic) (kafka_consumergroup_lag{$place})"),
    Signal(
        name="failed requests of the Ingress",
        query='sum by (ingress) (rate(nginx_ingress_controller_requests{$exported,status=~"5.."}[5m])) / '
        "sum by (ingress) (rate(nginx_ingress_controller_requests{$exported}[5m]))",
        kind="share",
        high=0.05,
        meaning="these requests are answered with errors of the server",
    ),
)
_NODES: Final = (
    Signal(
        name=NODE_CPU,
        query='1 - avg by (instance) (rate(node_cpu_seconds_total{$instances,mode="idle"}[5m]))',
        kind="share",
        high=0.95,
        meaning="all pods of the node compete for the CPU",
    ),
    Signal(
        name="memory of the node",
        query="1 - max by (instance) (node_memory_MemAvailable_bytes{$instances}) / "
        "max by (instance) (node_memory_MemTotal_bytes{$instances})",
        kind="share",
        high=0.95,
        meaning="the kernel kills processes, and the kubelet evicts pods",
    ),
    Signal(
        name="disk of the node",
        query=f"1 - min by (instance, mountpoint) (node_filesystem_avail_bytes{_DISK}) / "
        f"max by (instance, mountpoint) (node_filesystem_size_bytes{_DISK})",
        kind="share",
        high=0.9,
        meaning="the kubelet evicts pods, and images cannot be pulled",
    ),
    Signal(
        name="I/O pressure of the node",
        query="max by (instance) (rate(node_pressure_io_waiting_seconds_total{$instances}[5m]))",
        kind="share",
        high=0.5,
        meaning="processes wait for the disk in this share of the time",
    ),
    Signal(
        name=NEIGHBOUR,
        query='sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{container!="",container!="POD"}[5m]) '
        "* on (namespace, pod) group_left() max by (namespace, pod) (kube_pod_info{$nodes}) "
        "unless on (namespace, pod) kube_pod_info{$pods})",
        kind="delay",
        high=0.5,
        meaning="it is on the same node",
    ),
)
_CLUSTER: Final = (
    Signal(
        name="failed DNS lookups",
        query='sum(rate(coredns_dns_responses_total{rcode="SERVFAIL"}[5m])) / '
        'sum(rate(coredns_dns_responses_total{rcode!=""}[5m]))',
        kind="share",
        high=0.05,
        meaning="names cannot be resolved in the whole cluster",
    ),
    Signal(
        name="failed requests of the API server",
        query='sum(rate(apiserver_request_total{code=~"5.."}[5m])) / sum(rate(apiserver_request_total{code!=""}[5m]))',
        kind="share",
        high=0.05,
        meaning="controllers and kubelets are affected",
    ),
    Signal(
        name="mean seconds of a disk sync of etcd",
        query='sum(rate(etcd_disk_wal_fsync_duration_seconds_sum{instance!=""}[5m])) / '
        'sum(rate(etcd_disk_wal_fsync_duration_seconds_count{instance!=""}[5m]))',
        kind="excess",
        high=0.1,
        meaning="the API server is slow",
    ),
)
SIGNALS: Final = (*_CONTAINERS, *_VOLUMES, *_PROGRAMS, *_SERVERS, *_NODES, *_CLUSTER)
