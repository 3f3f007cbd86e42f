"""Vocabulary of questions: kinds and their aliases, symptoms, and words that are never names.

Contains only data, in lower case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class KindWord:
    """A kind, its resource name for kubectl, and its aliases."""

    kind: str
    resource: str
    names: tuple[str, ...]
    namespaced: bool = True


KINDS: Final = (
    KindWord(kind="Pod", resource="pods", names=("pod", "pods", "po")),
    KindWord(kind="Deployment", resource="deployments", names=("deployment", "deployments", "deploy")),
    KindWord(kind="StatefulSet", resource="statefulsets", names=("statefulset", "statefulsets", "sts")),
    KindWord(kind="DaemonSet", resource="daemonsets", names=("daemonset", "daemonsets", "ds")),
    KindWord(kind="ReplicaSet", resource="replicasets", names=("replicaset", "replicasets", "rs")),
    KindWord(kind="Job", resource="jobs", names=("job", "jobs")),
    KindWord(kind="CronJob", resource="cronjobs", names=("cronjob", "cronjobs", "cj")),
    KindWord(kind="Service", resource="services", names=("service", "services", "svc")),
    KindWord(kind="Ingress", resource="ingresses", names=("ingress", "ingresses", "ing")),
    KindWord(kind="ConfigMap", resource="configmaps", names=("configmap", "configmaps", "cm")),
    KindWord(kind="Secret", resource="secrets", names=("secret", "secrets")),
    KindWord(
        kind="PersistentVolumeClaim",
        resource="persistentvolumeclaims",
        names=("persistentvolumeclaim", "persistentvolumeclaims", "pvc", "pvcs"),
    ),
    KindWord(
        kind="PersistentVolume",
        resource="persistentvolumes",
        names=("persistentvolume", "persistentvolumes", "pv", "pvs"),
        namespaced=False,
    ),
    KindWord(
        kind="StorageClass", resource="storageclasses", names=("storageclass", "storageclasses", "sc"), namespaced=False
    ),
    KindWord(kind="Node", resource="nodes", names=("node", "nodes", "no"), namespaced=False),
    KindWord(kind="Namespace", resource="namespaces", names=("namespace", "namespaces", "ns"), namespaced=False),
    KindWord(
        kind="HorizontalPodAutoscaler",
        resource="horizontalpodautoscalers",
        names=("horizontalpodautoscaler", "horizontalpodautoscalers", "hpa", "hpas", "autoscaler", "autoscalers"),
    ),
    KindWord(
        kind="PodDisruptionBudget",
        resource="poddisruptionbudgets",
        names=("poddisruptionbudget", "poddisruptionbudgets", "pdb", "pdbs"),
    ),
    KindWord(
        kind="NetworkPolicy",
        resource="networkpolicies",
        names=("networkpolicy", "networkpolicies", "netpol", "netpols"),
    ),
    KindWord(
        kind="ResourceQuota", resource="resourcequotas", names=("resourcequota", "resourcequotas", "quota", "quotas")
    ),
    KindWord(kind="ServiceAccount", resource="serviceaccounts", names=("serviceaccount", "serviceaccounts", "sa")),
)
KIND_BY_WORD: Final = {name: kind for kind in KINDS for name in kind.names}
KIND_BY_NAME: Final = {kind.kind: kind for kind in KINDS}
# Abbreviations that are also English words mean a kind only before a slash.
ONLY_BEFORE_SLASH: Final = frozenset({"no", "po", "sc", "ds", "cm", "rs", "sa", "ing", "cj"})
# Kinds that own pods, in the order in which Holmes searches them for a name without a kind.
WORKLOAD_RESOURCES: Final = ("deployments", "statefulsets", "daemonsets", "cronjobs", "jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """A symptom. `said` contains the words for it in questions. `found` contains word beginnings for it in findings."""

    name: str
    said: tuple[str, ...]
    found: tuple[str, ...]


SYMPTOMS: Final = (
    Symptom(
        name="crash",
        said=("crash", "crashes", "crashed", "crashing", "crashloop", "crashloopbackoff", "crashlooping", "restart",
              "restarts", "restarted", "restarting", "dies", "dying", "died", "exits", "exited", "exit", "killed",
              "panic", "panics"),
        found=("crash", "restart", "exit code", "exits", "exited", "oomkilled", "backoff", "terminated", "killed"),
    ),
    Symptom(
        name="memory",
        said=("oom", "oomkilled", "oomkill", "memory", "ram", "heap"),
        found=("oom", "memory"),
    ),
    Symptom(
        name="start",
        said=("pending", "start", "starts", "starting", "startup", "schedule", "scheduled", "scheduling",
              "unschedulable", "stuck", "containercreating", "creating", "hangs", "hanging", "waiting"),
        found=("pending", "schedul", "unschedul", "containercreating", "cannot start", "not start", "insufficient",
               "taint", "unbound", "createcontainer", "does not exist", "no longer exists", "missing", "mount",
               "init container"),
    ),
    Symptom(
        name="unreachable",
        said=("unreachable", "502", "503", "504", "500", "timeout", "timeouts", "timing", "connection", "connect",
              "connects", "refused", "unavailable", "down", "outage", "endpoint", "endpoints", "reach", "reachable",
              "network", "traffic", "gateway", "responding", "respond", "5xx"),
        found=("endpoint", "selector", "port", "not ready", "readiness", "service", "apiservice", "ingress", "refused",
               "unavailable", "networkpolicy", "network policy", "timeout", "timed out", "gateway is rejected",
               "gatewayclass is rejected", "httproute is rejected"),
    ),
    Symptom(
        name="image",
        said=("image", "images", "pull", "pulling", "pulled", "registry", "imagepullbackoff", "errimagepull", "tag"),
        found=("image", "pull", "registry"),
    ),
    Symptom(
        name="dns",
        said=("dns", "resolve", "resolves", "resolving", "resolution", "lookup", "hostname", "coredns", "nxdomain"),
        found=("dns", "coredns", "no such host", "resolve", "host name"),
    ),
    Symptom(
        name="disk",
        said=("disk", "volume", "volumes", "storage", "mount", "mounts", "mounting", "pvc", "space", "full",
              "persistentvolumeclaim"),
        found=("disk", "volume", "storage", "mount", "space left", "claim", "ephemeral"),
    ),
    Symptom(
        name="certificate",
        said=("certificate", "certificates", "cert", "certs", "tls", "ssl", "x509", "https", "expired"),
        found=("certificate", "tls", "x509"),
    ),
    Symptom(
        name="permission",
        said=("permission", "permissions", "forbidden", "rbac", "denied", "unauthorized", "403", "401", "access",
              "privileges", "role", "rolebinding"),
        found=("forbidden", "denied", "rbac", "permission", "unauthorized", "role", "serviceaccount", "violates"),
    ),
    Symptom(
        name="ready",
        said=("ready", "unready", "notready", "readiness", "liveness", "probe", "probes", "unhealthy", "healthcheck"),
        found=("ready", "unready", "notready", "readiness", "liveness", "probe", "unhealthy"),
    ),
    Symptom(
        name="evicted",
        said=("evicted", "eviction", "evictions", "evict", "preempted", "preemption", "disappeared"),
        found=("evict", "preempt", "pressure"),
    ),
    Symptom(
        name="slow",
        said=("slow", "slowly", "latency", "lag", "lagging", "throttled", "throttling", "performance", "sluggish"),
        found=("cpu", "throttl", "slow", "limit", "restart", "not ready", "pressure", "saturated"),
    ),
    Symptom(
        name="rollout",
        said=("rollout", "rollouts", "rolling", "update", "updated", "upgrade", "upgraded", "release", "released",
              "deploying", "deploys", "progressing", "progress"),
        found=("rollout", "progress", "revision", "updated", "new replicaset"),
    ),
    Symptom(
        name="scaling",
        said=("scale", "scales", "scaling", "autoscaling", "hpa", "autoscaler", "replicas"),
        found=("scale", "hpa", "autoscaler", "replicas", "quota", "zero"),
    ),
    Symptom(
        name="job",
        said=("cronjob", "cronjobs", "job", "jobs", "batch", "schedule", "nightly", "backup"),
        found=("job", "schedule", "suspend", "deadline"),
    ),
)  # fmt: skip
SYMPTOM_WORDS: Final = frozenset(word for symptom in SYMPTOMS for word in symptom.said)

_COMMON = """
a about above according across actually after afterwards completed succeeded terminating deleting again ago all almost
already also always am among an and another any anybody anymore anyone anything are aren around as ask at away back
bad be because been before behind being below best better between big both broken but by call came can cannot cant
check checked checking come comes could couldn currently day days did didn different do does doesn doing don done each
earlier either else end enough ever every everybody everything exactly exist existing exists explain fail failed
failing fails failure failures far fast few figure find fine first fix fixed follow for found from get gets getting
give given gives go goes going gone good got grep had happen happened happening happens has hasn have haven having he
hello help her here hers hey hi him his hour hours how however i if in inside instead into is isn issue issues it its
itself just keep keeps kind kinds know known last lately later least let like likely list listed listing lists live
long look looking looks lot made main major make makes many may maybe me mean means might minute minutes misbehaving
missing moment month more most much must my name named names near need needs never new next night no nobody none nor
normal not nothing now number of off often ok okay old on once one only onto open or other others our out over overall
own past people per percent perhaps please possible previous probably problem problems properly put question quick
quickly quite rather re really reason recent recently related right run running runs said same say says second seconds
see seem seems seen send sent shall she should show showing shown shows since so some somebody someone something
sometimes soon still stop stopped stops such sure take tell than thank thanks that the their them then there these
they thing things think this those though through time times to today together told tomorrow tonight too toward tried
tries try trying twice two under unable unexpected unexpectedly until up upon us use used user users uses using
usually very via want wants was wasn way we week weeks well went were weren what whats when where whether which while
who whole whom whose why will with within without won word words work worked working works worse worst would wouldn
wrong yes yesterday yet you your yours
"""
_TECHNICAL = """
3am active address addresses age alert alerts amount anomaly app application applications apps argument arguments
attached attention available average behaviour behavior bug bugs capacity cause caused causes causing change changed
changes changing check cluster clusters cm command commands component components condition conditions config
configuration configured consume consumes consuming container containers contain containing contains context count
counts cpu cpus crashloops created creation current customers data default delete deleted dependencies dependency
depends deploy deployed deployment deployments describe desired details detect detected diagnose diagnosis diagnostics
dns entries env environment environments err erroring error errors evaluate event events everyone exception exceptions
expected external fatal fault faults faulty file files filter flag flapping green health healthy helm high history
holmes host hosts http identify impact incident incidents info information infrastructure init ingress inspect
installed instance instances internal internet investigate ip ips items k8s key keys kubectl kube kubelet kubernetes
label labels largest latest limit limits line lines load local locate log logged logging logs loop looping low machine
machines manifest matching max maximum medium message messages method metric metrics min minimum mode node nodes
object objects offline online operational outages output overview owner owns page pages part parse password path
performing phase pod pods point points port ports prod production provide pv query rate ready red regarding replica
replicas report reported request requested requests resource resources response responses restarted result results
return returned returning returns revision revisions root route scope scheduler secret secrets selector server servers
service services serving setting settings setup shutdown side size smallest spec specific staging stage start state
stateful status statuses suddenly summarise summarize summary suspicious symptom symptoms system systems tail target
team template terminated test tests text there traffic trace tracebacks trigger triggered triggering trouble
troubleshoot troubleshooting type types unhealthy unknown unstable usage value values variable variables version
versions view warn warning warnings workload workloads write yaml zone poem joke story weather
"""
# Symptom words that are often names of workloads.
_ALSO_NAMES: Final = frozenset({"coredns", "backup", "batch", "gateway", "registry", "nightly"})
NEVER_NAMES: Final = (
    frozenset(_COMMON.split()) | frozenset(_TECHNICAL.split()) | (SYMPTOM_WORDS - _ALSO_NAMES) | KIND_BY_WORD.keys()
)
# Words that are never names of objects but often names of namespaces.
_OFTEN_NAMESPACES: Final = frozenset({
    "default", "demo", "dev", "ingress", "internal", "prod", "production", "stage", "staging", "system", "test",
})  # fmt: skip
NOT_A_NAMESPACE: Final = (NEVER_NAMES - _OFTEN_NAMESPACES) | frozenset(
    {"general", "detail", "total", "particular", "trouble", "short"}
)
