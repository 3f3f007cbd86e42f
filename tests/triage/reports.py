"""Reports of the diagnosis for a small shop with typical faults."""

from __future__ import annotations

from holmes.values.findings import (
    Change,
    DiagnosisReport,
    Evidence,
    Finding,
    Incident,
    KindCount,
    NotChecked,
    ObjectRef,
    ScanCost,
    Severity,
)

TAKEN_AT = "2026-11-22T05:00:00Z"


def ref(kind: str, name: str, namespace: str = "shop") -> ObjectRef:
    return ObjectRef(kind=kind, name=name, namespace=namespace)


def finding(
    rule_id: str,
    subject: ObjectRef,
    culprit: ObjectRef,
    cause: str,
    *evidence: Evidence,
    next_check: str = "",
    title: str = "Fault",
    severity: Severity = "critical",
    because: tuple[ObjectRef, ...] = (),
    symptom: bool = False,
) -> Finding:
    return Finding(
        rule_id=rule_id,
        severity=severity,
        title=title,
        subject=subject,
        culprit=culprit,
        cause=cause,
        evidence=evidence,
        next_check=next_check,
        because=because,
        role="symptom" if symptom else "cause",
    )


def incident(
    *findings: Finding,
    symptoms: tuple[Finding, ...] = (),
    affected: tuple[ObjectRef, ...] = (),
    affected_pods: int = 0,
    since: str = "",
    changed: tuple[Change, ...] = (),
) -> Incident:
    first = findings[0]
    return Incident(
        id=f"{first.rule_id}-{first.culprit.name}",
        severity=first.severity,
        title=first.title,
        culprit=first.culprit,
        cause=first.cause,
        findings=findings,
        symptoms=symptoms,
        affected=affected,
        affected_pods=affected_pods,
        since=since,
        changed_before=changed,
    )


def report(
    *incidents: Incident,
    namespaces: tuple[str, ...] = ("shop",),
    not_checked: tuple[NotChecked, ...] = (),
    resource: str = "",
    omitted: int = 0,
) -> DiagnosisReport:
    return DiagnosisReport(
        taken_at=TAKEN_AT,
        namespaces=namespaces,
        incidents=incidents,
        checked=(
            KindCount(kind="Deployment", total=6, affected=1),
            KindCount(kind="Pod", total=12, affected=2),
            KindCount(kind="Service", total=6, affected=1),
            KindCount(kind="Ingress", total=1, affected=1),
        ),
        not_checked=not_checked,
        rules_run=66,
        cost=ScanCost(list_calls=28, requests=31, logs_read=2, seconds=0.9),
        resource=resource,
        omitted=omitted,
    )


CHECKOUT = ref("Deployment", "checkout")
CHECKOUT_POD = ref("Pod", "checkout-6c9f7d8b5-x2k4q")
CHECKOUT_SERVICE = ref("Service", "checkout")
SETTINGS = ref("ConfigMap", "checkout-settings")
CART = ref("Deployment", "cart")
CART_POD = ref("Pod", "cart-5d8f6bb7c9-qwz7x")
SEARCH = ref("Deployment", "search")
SEARCH_POD = ref("Pod", "search-7d4b9c6f8d-2lmnp")
WEB_SERVICE = ref("Service", "web")
WEB = ref("Deployment", "web")
CATALOG_CLAIM = ref("PersistentVolumeClaim", "catalog-data")
FAST = ref("StorageClass", "fast-ssd", "")

MISSING_SETTINGS = incident(
    finding(
        "P05",
        CHECKOUT_POD,
        SETTINGS,
        "ConfigMap shop/checkout-settings does not exist, but container app of Deployment shop/checkout takes its "
        "environment from it; the closest existing name is 'checkout-setting'",
        Evidence(object=CHECKOUT, path="spec.template.spec.containers[0].envFrom[0].configMapRef.name",
                 value="checkout-settings"),
        Evidence(object=CHECKOUT_POD, path="status.containerStatuses[0].state.waiting.message",
                 value='configmap "checkout-settings" not found'),
        title="A ConfigMap that a pod needs is missing",
        next_check="kubectl -n shop get configmaps",
    ),
    symptoms=(
        finding("N-S02", CHECKOUT_SERVICE, CHECKOUT_SERVICE, "Service shop/checkout has no ready endpoint",
                symptom=True, because=(CHECKOUT,)),
    ),
    affected=(CHECKOUT, CHECKOUT_SERVICE),
    affected_pods=2,
    since="2026-11-22T04:41:00Z",
    changed=(Change(object=CHECKOUT, what="new revision 4: envFrom changed", at="2026-11-22T04:40:58Z"),),
)  # fmt: skip

OUT_OF_MEMORY = incident(
    finding(
        "P02",
        CART_POD,
        CART,
        "The container app of Deployment shop/cart was killed after 40s because it exceeded its memory limit "
        "resources.limits.memory = 64Mi (OOMKilled)",
        Evidence(object=CART, path="spec.template.spec.containers[0].resources.limits.memory", value="64Mi"),
        Evidence(object=CART_POD, path="status.containerStatuses[0].lastState.terminated.reason", value="OOMKilled"),
        title="Container was killed for want of memory",
        next_check="kubectl -n shop top pod cart-5d8f6bb7c9-qwz7x --containers",
    ),
    affected=(CART,),
    affected_pods=1,
    since="2026-11-22T04:10:00Z",
)

BAD_IMAGE = incident(
    finding(
        "P04",
        SEARCH_POD,
        SEARCH,
        "The image registry.shop.example/search:2.1O of container app of Deployment shop/search cannot be pulled: "
        "there is no such tag",
        Evidence(object=SEARCH, path="spec.template.spec.containers[0].image",
                 value="registry.shop.example/search:2.1O"),
        Evidence(object=SEARCH_POD, path="event Failed (x6)",
                 value='failed to pull image "registry.shop.example/search:2.1O": not found'),
        title="Image cannot be pulled",
        next_check="kubectl -n shop describe pod search-7d4b9c6f8d-2lmnp",
    ),
    affected=(SEARCH,),
    affected_pods=1,
    since="2026-11-22T04:55:00Z",
    changed=(Change(object=SEARCH, what="image 2.0 -> 2.1O", at="2026-11-22T04:54:30Z"),),
)  # fmt: skip

WRONG_SELECTOR = incident(
    finding(
        "N-S01",
        WEB_SERVICE,
        WEB_SERVICE,
        "Service shop/web selects no pod: its selector app=web-v2 is not the label app=web of Deployment shop/web",
        Evidence(object=WEB_SERVICE, path="spec.selector.app", value="web-v2"),
        Evidence(object=WEB, path="spec.template.metadata.labels.app", value="web"),
        title="Service selects no pod",
        next_check="kubectl -n shop get pods -l app=web",
        because=(),
    ),
    symptoms=(
        finding("I02", ref("Ingress", "shop"), ref("Ingress", "shop"),
                "Ingress shop/shop sends / to Service shop/web, which has no endpoints", symptom=True),
    ),
    affected=(WEB_SERVICE, ref("Ingress", "shop")),
)  # fmt: skip

NO_STORAGE_CLASS = incident(
    finding(
        "V01",
        CATALOG_CLAIM,
        FAST,
        "StorageClass fast-ssd does not exist, but PersistentVolumeClaim shop/catalog-data asks for it",
        Evidence(object=CATALOG_CLAIM, path="spec.storageClassName", value="fast-ssd"),
        title="StorageClass is missing",
        next_check="Ask who runs the cluster which StorageClasses there should be",
    ),
    symptoms=(
        finding("S05", ref("Pod", "catalog-0"), ref("StatefulSet", "catalog"), "Pod waits for a volume",
                symptom=True, because=(CATALOG_CLAIM,)),
    ),
    affected=(CATALOG_CLAIM, ref("StatefulSet", "catalog")),
    affected_pods=1,
)  # fmt: skip

HIGH_LIMIT = incident(
    finding(
        "N08",
        ref("Node", "worker-1", ""),
        ref("Node", "worker-1", ""),
        "The limits of the pods on Node worker-1 are more than it has",
        title="Node is overcommitted",
        severity="info",
    )
)

SHOP = report(MISSING_SETTINGS, WRONG_SELECTOR, OUT_OF_MEMORY, BAD_IMAGE, NO_STORAGE_CLASS, HIGH_LIMIT)
"""All reports in one."""
