"""kubectl says of a recording what it said of the cluster: a table of read commands, run against both.

The cluster goes on while it is looked at (crashes, events), so a command that differs is tried again on a recording
that is younger. One that still differs is a fault of the recording or of its server.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.redaction.redactor import Redactor
from holmes.snapshot.recorder import RecordOptions, record_cluster
from holmes.snapshot.server.serving import serve_snapshot
from holmes.values.environment import Environment
from tests.cluster.handle import Cluster
from tests.snapshot.kubectl import Kubectl, difference
from tests.snapshot.shop import running_shop
from tests.support.long_form import cases, count

ROUNDS = 6
AT_ONCE = 3

# NS is the namespace, GROUP the group of the custom resource. Durations in the output may differ by some seconds.
WITH_AGES = """
describe pods -l app=checkout
get pods
get pods -o wide
get pods --show-labels -L app,tier --no-headers
get pods -l app=web
get pods -l 'app in (web,cart),tier!=front'
get pods -l '!tier'
get pods -l tier
get pods -l 'app notin (web,search)'
get pods --field-selector status.phase=Running
get pods --field-selector status.phase!=Running,spec.nodeName=node1
get pods --field-selector spec.serviceAccountName=checkout
get pods --sort-by=.metadata.creationTimestamp
get pods -A --field-selector metadata.namespace=NS
get pods --chunk-size=2
get pods -l app=cart --watch --output-watch-events --request-timeout=1s
get pods web-does-not-exist
get pod/cart-0 deploy/web svc/web
get all
get all -o wide
get deploy,rs,sts,ds -o wide
get jobs,cronjobs -o wide
get svc,ep,endpointslices,ing,netpol -o wide
get cm,secrets,sa,quota,limits
get hpa,pdb,pvc -o wide
get pv NS-archive -o wide
get roles,rolebindings -o wide
get clusterroles view edit
get clusterrolebindings cluster-admin -o wide
get nodes -o wide
get ns NS kube-system --show-labels
get events --field-selector involvedObject.kind=Pod,type=Warning,involvedObject.name=unprepared
get events --field-selector reason=Scheduled -o wide
get events.events.k8s.io --field-selector regarding.name=cart-0
get controllerrevisions
get leases -n kube-node-lease
get apiservices v1.apps v1.
get priorityclasses,runtimeclasses,ingressclasses
get flowschemas,prioritylevelconfigurations
get crd promotions.GROUP
get promotions
get promotions -o wide
get promotions.v1.GROUP --field-selector spec.product=hats
get promotions.v1beta1.GROUP
get promo -o wide --show-kind
describe pod -l 'app in (web,cart)'
describe pod gated too-large unprepared accompanied
describe deploy/web deploy/checkout rs
describe sts/cart ds/search job/import cronjob/report
describe svc/web svc/cart svc/payments ingress/web netpol/web
describe hpa/web pdb/web quota/shop limits/shop
describe pvc/orders pvc/archive pv/NS-archive cm/web-settings sa/checkout
describe role/reader rolebinding/reader ns/NS
describe node node1
describe promotion spring
events --for pod/cart-0
events --for pod/unprepared --types=Warning
events --for deploy/web -o wide
rollout history deploy/web
"""

EXACT = """
get pods -o yaml
get deploy web -o yaml --show-managed-fields=false
get cm,svc,ing,hpa,pdb,pvc,netpol,sts,ds -o yaml
get promotions -o yaml
get promotions.v1beta1.GROUP spring -o yaml
get pods -o name
get pods -o jsonpath='{range .items[*]}{.metadata.name}{"\\t"}{.spec.nodeName}{"\\n"}{end}'
get pods -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image,PHASE:.status.phase
get deploy web -o go-template='{{range .spec.template.spec.containers}}{{.image}} {{end}}'
get pods --field-selector spec.color=red
get pods -l 'app=='
get nothing
get deploy nothing
get events -o name --sort-by=.metadata.name
get secret payments-token -o jsonpath='{.type}'
get --raw /version
get --raw /apis/apps/v1
get --raw /api/v1
get --raw /nothing
get --raw /apis/apps/v1/namespaces/NS/deployments/nothing
logs deploy/web -c web
logs deploy/web --all-containers --prefix
logs -l app=cart --prefix --tail=2
logs cart-0 --timestamps
logs cart-0 --since-time=2020-01-01T00:00:00Z --tail=1
logs cart-0 --since-time=2036-01-01T00:00:00Z
logs deploy/web -c web --limit-bytes=20
logs deploy/checkout --previous --tail=1
logs job/import
logs gated
logs too-large
logs deploy/catalog
logs unprepared -c prepare
logs unprepared
logs cart-0 --previous
logs cart-0 -c nothing
logs nothing
logs accompanied --all-containers
logs job/import -f
top pods
top nodes
api-resources
api-resources --namespaced=false -o wide
api-resources --api-group=apps -o name
api-versions
version
cluster-info
auth can-i list pods
auth can-i list pods --as system:serviceaccount:NS:checkout
auth can-i delete pods --as system:serviceaccount:NS:checkout
auth can-i get pods --subresource=log --as system:serviceaccount:NS:checkout
auth can-i list secrets --as someone
auth can-i --list --as system:serviceaccount:NS:checkout
rollout status deploy/web
rollout status deploy/checkout --timeout=1s
wait --for=condition=Available deploy/web --timeout=5s
wait --for=condition=Ready pod/gated --timeout=1s
wait --for=jsonpath={.status.phase}=Succeeded pod -l app=import --timeout=5s
explain pods.spec.nodeName
explain promotions.spec.product
"""


def commands(table: str, namespace: str) -> list[str]:
    lines = [line for line in table.strip().splitlines() if line]
    return [line.replace("NS", namespace).replace("GROUP", f"{namespace}.shop.example") for line in lines]


@asynccontextmanager
async def served(cluster: Cluster, namespace: str, folder: Path, *, openapi: bool) -> AsyncIterator[Kubectl]:
    """A fresh recording of `namespace`, served."""
    environment = Environment.of({"KUBECONFIG": str(cluster.admin), "HOME": str(folder)})
    async with await ClusterClient.connect(environment) as client:
        options = RecordOptions(namespaces=(namespace,), openapi=openapi)
        summary = await record_cluster(client, folder / "recording", options, Redactor(bytes(16)), lambda _: None)
    assert [each for each in summary.unread if each.resource != "pods/log"] == []
    async with serve_snapshot(folder / "recording") as server:
        yield Kubectl(program=cluster.kubectl, kubeconfig=server.kubeconfig, namespace=namespace, cache=folder)


async def differing(commands: Iterable[str], live: Kubectl, recorded: Kubectl, *, ages: bool) -> dict[str, str]:
    """The commands that print something else on the recording, each with what differs."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def compared(command: str) -> tuple[str, str]:
        async with slots:
            arguments = shlex.split(command)
            return command, difference(await live.run(*arguments), await recorded.run(*arguments), ages=ages)

    found = await asyncio.gather(*(compared(command) for command in commands))
    return {command: what for command, what in found if what}


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_kubectl_says_of_a_recording_what_it_said_of_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    with running_shop(cluster, tmp_path) as namespace:
        live = Kubectl(program=cluster.kubectl, kubeconfig=cluster.admin, namespace=namespace, cache=tmp_path)
        with_ages, exact = (cases(commands(each, namespace), 3) for each in (WITH_AGES, EXACT))
        assert len(with_ages) + len(exact) >= count(long=40, short=13)
        wrong: dict[str, str] = dict.fromkeys((*with_ages, *exact), "not run")
        for _ in range(ROUNDS):
            schemas = any(each.startswith("explain") for each in wrong)  # they make a recording slow
            async with served(cluster, namespace, tmp_path, openapi=schemas) as recorded:
                left = await differing([each for each in with_ages if each in wrong], live, recorded, ages=True)
                wrong = left | await differing([each for each in exact if each in wrong], live, recorded, ages=False)
            if not wrong:
                break
    assert wrong == {}
