"""Finds what makes an object or provides a service: the operator of a custom resource, the network plugin of a node.

If a product is missing or does not work, the events and conditions of its producer contain the cause.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.chaos import kraken_runs, targets_of
from holmes.diagnosis.facts.custom_table import values_at
from holmes.diagnosis.facts.nodes import UNINITIALIZED_TAINT
from holmes.diagnosis.facts.quotas import exhausted_for
from holmes.diagnosis.facts.status import pod_ready
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import children, moment, text
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_PRODUCTS: Final = (
    ("external-secrets.io", "ExternalSecret", "Secret", ("spec.target.name", "{}")),
    ("bitnami.com", "SealedSecret", "Secret", ("spec.template.metadata.name", "{}")),
    ("cert-manager.io", "Certificate", "Secret", ("spec.secretName",)),
    ("secrets.hashicorp.com", "*", "Secret", ("spec.destination.name",)),
    ("secrets.infisical.com", "InfisicalSecret", "Secret", ("spec.managedSecretReference.secretName",)),
    ("secrets.doppler.com", "DopplerSecret", "Secret", ("spec.managedSecret.name",)),
    ("onepassword.com", "OnePasswordItem", "Secret", ("{}",)),
    ("spv.no", "AzureKeyVaultSecret", "Secret", ("spec.output.secret.name",)),
    ("isindir.github.com", "SopsSecret", "Secret", ("spec.secretTemplates.*.name",)),
    ("secrets-store.csi.x-k8s.io", "SecretProviderClass", "Secret", ("spec.secretObjects.*.secretName",)),
    ("trust.cert-manager.io", "Bundle", "ConfigMap", ("{}",)),
    ("kafka.strimzi.io", "KafkaUser", "Secret", ("{}",)),
    ("kafka.strimzi.io", "Kafka", "Secret", ("{}-cluster-ca-cert",)),
    ("postgresql.cnpg.io", "Cluster", "Secret", ("{}-app",)),
    ("postgresql.cnpg.io", "Cluster", "Secret", ("{}-superuser",)),
    ("acid.zalan.do", "postgresql", "Secret", ("*.{}.credentials.postgresql.acid.zalan.do",)),
    ("postgres-operator.crunchydata.com", "PostgresCluster", "Secret", ("{}-pguser-*",)),
    ("elasticsearch.k8s.elastic.co", "Elasticsearch", "Secret", ("{}-es-*",)),
    ("rabbitmq.com", "RabbitmqCluster", "Secret", ("{}-default-user",)),
    ("cdi.kubevirt.io", "DataVolume", "PersistentVolumeClaim", ("{}",)),
    ("keda.sh", "ScaledObject", "HorizontalPodAutoscaler", ("status.hpaName", "keda-hpa-{}")),
    ("*", "*", "Secret", ("spec.writeConnectionSecretToRef.name",)),
)
"""Custom kinds with what they make: group, kind, kind of the product and its name.

The name is the first field that is set. `{}` stands for the name of the custom resource, and `*` for any text.
"""
_OPERATORS: Final = (
    ("kafka.strimzi.io", "*", ("strimzi-cluster-operator",)),
    ("bitnami.com", "*", ("sealed-secrets-controller", "sealed-secrets")),
    ("postgresql.cnpg.io", "*", ("cnpg-controller-manager", "cnpg-cloudnative-pg", "cloudnative-pg")),
    ("acid.zalan.do", "*", ("postgres-operator",)),
    ("postgres-operator.crunchydata.com", "*", ("pgo", "postgres-operator")),
    ("*.k8s.elastic.co", "*", ("elastic-operator",)),
    ("monitoring.coreos.com", "*", ("*prometheus-operator", "*-kube-prometheus-stack-operator")),
    ("operators.coreos.com", "*", ("olm-operator", "catalog-operator")),
    ("operator.victoriametrics.com", "*", ("vm-operator", "victoria-metrics-operator", "*-victoria-metrics-operator")),
    ("cluster.x-k8s.io", "*", ("capi-controller-manager",)),
    ("kubevirt.io", "*", ("virt-operator", "virt-controller")),
    ("*.istio.io", "*", ("istiod", "istiod-*")),
    ("snapshot.storage.k8s.io", "*", ("snapshot-controller",)),
    ("kustomize.toolkit.fluxcd.io", "*", ("kustomize-controller",)),
    ("helm.toolkit.fluxcd.io", "*", ("helm-controller",)),
    ("source.toolkit.fluxcd.io", "*", ("source-controller",)),
    ("notification.toolkit.fluxcd.io", "*", ("notification-controller",)),
    ("argoproj.io", "Application", ("argocd-application-controller", "*-argocd-application-controller")),
    ("argoproj.io", "ApplicationSet", ("argocd-applicationset-controller", "*-argocd-applicationset-controller")),
    ("argoproj.io", "Rollout", ("argo-rollouts",)),
    ("argoproj.io", "*", ("workflow-controller", "argo-workflows-workflow-controller")),
)
"""Operators whose names do not follow from the API group: group, kind and names of the workloads."""
_DOMAIN_WORDS: Final = (
    "io com org net dev sh app apps cloud k8s x-k8s sigs github kubernetes operator operators core api"
)
_ANY_DOMAIN: Final = frozenset(_DOMAIN_WORDS.split())
_OPERATOR_ENDING: Final = expression(r"(?:^|-)(?:operator|controller|manager|provisioner)$")
_RUNNING_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet")
_NETWORK_PLUGINS: Final = expression(
    r"^(?:calico-node|canal|(?:kube-)?flannel(?:-ds)?|cilium(?:-agent)?|weave-net|aws-node|kindnet|antrea-agent"
    r"|kube-router|ovnkube-node|kube-ovn-cni|ovs-ovn|azure-cn[is]|multus|kube-multus-ds|terway.*|netd)$"
)
_CLOUD_CONTROLLERS: Final = expression(r"cloud-controller(?:-manager)?(?:$|-)|(?:^|-)ccm$|-cloud-provider$")
_NETWORK_WORDS: Final = expression(r"(?i)\bcni\b|network ?plugin|networkready=false")
_CNI_FOLDERS: Final = ("/etc/cni", "/opt/cni")
_DEVICE_FOLDER: Final = "/var/lib/kubelet/device-plugins"
_MOST_STEPS: Final = 3


class _Index:
    """The products of custom resources, and the workloads that may be operators."""

    def __init__(self, state: ClusterState) -> None:
        self.makers: dict[ObjectRef, list[ObjectRef]] = defaultdict(list)
        self.patterns: list[tuple[ObjectRef, ObjectRef]] = []
        self.controllers: dict[tuple[str, str], tuple[ObjectRef, ...]] = {}
        self.workloads: dict[str, list[ObjectRef]] = defaultdict(list)
        for kind in _RUNNING_KINDS:
            for each in state.of(kind):
                self.workloads[each.name].append(each.ref)
        for run in kraken_runs(state):
            for target in targets_of(state, run):
                self.makers[target].append(state.workload_of(run).ref)
        for each in state.custom_resources:
            for target in targets_of(state, each):
                self.makers[target].append(each.ref)
            for product in _products(each):
                if "*" in product.name:
                    self.patterns.append((product, each.ref))
                else:
                    self.makers[product].append(each.ref)


def _products(each: ClusterObject) -> Iterator[ObjectRef]:
    for group, kind, product, names in _PRODUCTS:
        if fnmatchcase(each.group, group) and kind in ("*", each.kind):
            found = (_name(each, name) for name in names)
            for name in next(filter(None, found), ()):
                yield ObjectRef(kind=product, namespace=each.namespace or _namespace(each, names[0]), name=name)


def _namespace(each: ClusterObject, name: str) -> str:
    """Return the namespace that a resource of the whole cluster names next to the name of its product."""
    return next(iter(values_at(each.body, f"{name.rpartition('.')[0]}.namespace")), "")


def _name(each: ClusterObject, name: str) -> tuple[str, ...]:
    return (name.format(each.name),) if "{}" in name else tuple(values_at(each.body, name))


@once_per_state
def _index(state: ClusterState) -> _Index:
    return _Index(state)


def producers_of(state: ClusterState, ref: ObjectRef) -> tuple[ObjectRef, ...]:
    """Return what makes the object, or makes it work. The object might not exist, its producers do.

    A quota that leaves no room for a missing object counts as a producer of it and of the custom resource that makes
    it, because it decides whether the object exists, and so does a chaos experiment for the workloads that it disturbs.
    """
    if ref.group:
        each = state.find(ref)
        missing = (made for made in _products(each) if state.find(made) is None) if each is not None else ()
        refusing = (quota.ref for made in missing for quota, _ in exhausted_for(state, made))
        return (*controllers_of(state, ref.kind, ref.group), *refusing)
    if ref.kind == "Node":
        return _of_node(state, ref)
    if ref.kind == "IngressClass":
        return _ingress_controllers(state, ref)
    if ref.kind == "APIService":
        service = state.find(ref)
        target = service.child("spec", "service") if service is not None else {}
        found = ObjectRef(kind="Service", namespace=text(target, "namespace"), name=text(target, "name"))
        return (found,) if found.name else ()
    index = _index(state)
    made = [by for product, by in index.patterns if _matches(product, ref)]
    quotas = (quota.ref for quota, _ in exhausted_for(state, ref)) if state.find(ref) is None else ()
    return (*index.makers.get(ref, ()), *made, *quotas)


def _matches(product: ObjectRef, ref: ObjectRef) -> bool:
    return (product.kind, product.namespace) == (ref.kind, ref.namespace) and fnmatchcase(ref.name, product.name)


def all_producers(state: ClusterState, ref: ObjectRef) -> dict[ObjectRef, None]:
    """Return the producers of the object, their producers and so on, the nearest first."""
    found: dict[ObjectRef, None] = {}
    last = [ref]
    for _ in range(_MOST_STEPS):
        last = [by for each in last for by in producers_of(state, each) if by not in found and by != ref]
        found |= dict.fromkeys(last)
    return found


def controllers_of(state: ClusterState, kind: str, group: str) -> tuple[ObjectRef, ...]:
    """Return the workloads that seem to be the operator of a custom kind, by their names."""
    index = _index(state)
    if (group, kind) not in index.controllers:
        named = next((names for one, of, names in _OPERATORS if fnmatchcase(group, one) and of in ("*", kind)), ())
        found = (refs for name, refs in index.workloads.items() if any(fnmatchcase(name, one) for one in named))
        by_table = tuple(ref for refs in found for ref in refs)
        index.controllers[group, kind] = by_table if named else _named_after(index.workloads, group)
    return index.controllers[group, kind]


def provisioners_of(state: ClusterState, provisioner: str) -> tuple[ObjectRef, ...]:
    """Return the workloads that seem to be a provisioner such as `csi.example.com`, by their names."""
    domain, _, path = provisioner.partition("/")
    words = [word for word in (*domain.split(".")[:-1], path) if word not in {"csi", ""}]
    return _named_after(_index(state).workloads, ".".join(words))


def _named_after(workloads: Mapping[str, Iterable[ObjectRef]], group: str) -> tuple[ObjectRef, ...]:
    """Return the workloads with the name of the API group, such as `cert-manager` or `keda-operator`."""
    found: list[ObjectRef] = []
    for word in group.split("."):
        if word in _ANY_DOMAIN:
            continue
        for name, refs in workloads.items():
            rest = name.removeprefix(word)
            if name == word or (rest != name and rest.startswith("-") and _OPERATOR_ENDING.search(rest)):
                found += refs
    return tuple(found)


def is_network_plugin(plugin: ClusterObject) -> bool:
    """Return whether a DaemonSet seems to be the network plugin of its nodes."""
    return _NETWORK_PLUGINS.match(plugin.name) is not None or _mounts(plugin, _CNI_FOLDERS)


def network_pods(state: ClusterState, node: str) -> tuple[ObjectRef, ...]:
    """Return the pods of the network plugin on a node."""
    return tuple(
        pod.ref
        for plugin in state.of("DaemonSet")
        if is_network_plugin(plugin)
        for pod in state.pods_of(plugin)
        if pod.text("spec", "nodeName") == node
    )


def volume_driver_pods(state: ClusterState, driver: str, node: str) -> tuple[ClusterObject, ...]:
    """Return the pods on a node whose DaemonSet provides a CSI driver such as `ebs.csi.aws.com`, by socket or name."""
    named = expression(rf"(?:/plugins/|[\" ]--?driver-?name[= ]){re.escape(driver)}(?![\w.-])")
    plugins = (each for each in state.of("DaemonSet") if named.search(json.dumps(each.child("spec", "template"))))
    pods = (pod for plugin in plugins for pod in state.pods_of(plugin))
    return tuple(pod for pod in pods if pod.text("spec", "nodeName") == node)


def device_plugins(state: ClusterState, resource: str) -> tuple[ObjectRef, ...]:
    """Return the DaemonSets that offer an extended resource such as `nvidia.com/gpu` on their nodes."""
    vendor = next((word for word in resource.partition("/")[0].split(".") if word not in _ANY_DOMAIN | {"gpu"}), "")
    return tuple(
        each.ref
        for each in (state.of("DaemonSet") if "/" in resource and vendor else ())
        if ("device-plugin" in each.name or _mounts(each, (_DEVICE_FOLDER,)))
        and vendor in f"{each.name} {' '.join(_images(each))}"
    )


def cloud_controllers(state: ClusterState) -> tuple[ObjectRef, ...]:
    """Return the workloads that initialize new nodes and make load balancers for a cloud provider."""
    return tuple(each.ref for kind in _RUNNING_KINDS for each in state.of(kind) if _CLOUD_CONTROLLERS.search(each.name))


def _of_node(state: ClusterState, ref: ObjectRef) -> tuple[ObjectRef, ...]:
    """Return the network plugin if the node has no network, and the cloud controllers if they did not prepare it."""
    node = state.find(ref)
    if node is None:
        return ()
    uninitialized = any(text(taint, "key") == UNINITIALIZED_TAINT for taint in node.children("spec", "taints"))
    ready, network = node.condition("Ready"), node.condition("NetworkUnavailable")
    silent = text(ready, "status") == "False" and _NETWORK_WORDS.search(text(ready, "message"))
    without_network = silent or text(network, "status") == "True"
    return (
        *(cloud_controllers(state) if uninitialized else ()),
        *(network_pods(state, node.name) if without_network else ()),
    )


def _ingress_controllers(state: ClusterState, ref: ObjectRef) -> tuple[ObjectRef, ...]:
    """Return the workloads that handle an IngressClass, by the name of its controller."""
    found = state.find(ref)
    controller = found.text("spec", "controller") if found is not None else ""
    domain, _, path = controller.partition("/")
    words = [word for word in (path, *domain.split(".")) if word not in {*_ANY_DOMAIN, "", "ingress-controller", "www"}]
    return tuple(
        by
        for name, refs in _index(state).workloads.items()
        if any(name == word or name.startswith(f"{word}-") for word in words)
        and not name.endswith(("-backend", "-webhook"))
        for by in refs
    )


def _mounts(workload: ClusterObject, folders: tuple[str, ...]) -> bool:
    volumes = workload.children("spec", "template", "spec", "volumes")
    return any(text(volume, "hostPath", "path").startswith(folders) for volume in volumes)


def _images(workload: ClusterObject) -> tuple[str, ...]:
    return tuple(text(each, "image") for each in children(workload.body, "spec", "template", "spec", "containers"))


_STALE_LEASES: Final = 4
"""A leader renews its lease several times in its duration."""


def stopped_component(state: ClusterState, name: str) -> ObjectRef | None:
    """Return the pod or the Lease of a part of the control plane that shows that it does not work, or None.

    The Lease decides, because one of several pods leads. Without it, no pod of the part may be ready.
    """
    lease = state.get("Lease", "kube-system", name)
    renewed = moment(lease.text("spec", "renewTime")) if lease is not None else None
    sick = [each for each in state.of("Pod", "kube-system") if each.labels.get("component") == name]
    if lease is not None and renewed is not None:
        late = state.now - renewed > _STALE_LEASES * (lease.integer("spec", "leaseDurationSeconds") or 15)
        return next((each.ref for each in sick if not pod_ready(each)), lease.ref) if late else None
    return sick[0].ref if sick and not any(map(pod_ready, sick)) else None
