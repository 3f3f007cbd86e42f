"""Explains what logs report by settings and objects that no rule judges on their own.

Another workload that the lines name can be the reason of trouble. A Lease, a suspended CronJob and a setting that is
newer than its process explain a workload that only waits, or that works with old values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.chaos import action_of, is_injected, kraken_runs, targets_of
from holmes.diagnosis.facts.container_settings import does_without, unset_variable
from holmes.diagnosis.facts.edges import workload_hosts
from holmes.diagnosis.facts.evidence import edited_at
from holmes.diagnosis.facts.host_mentions import mentions
from holmes.diagnosis.facts.line_groups import OFTEN
from holmes.diagnosis.facts.line_kinds import CREDENTIALS
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.producers import producers_of
from holmes.diagnosis.facts.references import references_of
from holmes.diagnosis.facts.resources import amount
from holmes.diagnosis.facts.stale_settings import old_host, old_value, stale_settings, visible_edits
from holmes.diagnosis.facts.stops import stop_of_producer
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import children, duration, moment, text, texts, written
from holmes.triage.log_links import behind_service, named_services, objects_named
from holmes.triage.log_troubles import REACHED, workloads_of
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef
from holmes.values.pod_names import is_pod_name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.log_troubles import Trouble

EXPIRED: Final = expression(
    r"(?i)(?<!out )(?<!out has )(?<!execution )(?<!not )(?<!rejects an )(?<![?&-]token=)\bexpired\b(?![\w-])"
    r"|\bnot yet valid\b|\bnotAfter\b|\bno longer valid\b"
)
_TOLD_BY_PEER: Final = expression(r"(?i)\bremote error\b|\b(?:sslv3|tlsv1|ssl|tls|fatal|received)\b.{0,20} alert\b")
"""Words of a TLS error that the other side reports, so that the own certificate is at fault."""
_OF_EXPERIMENTS: Final[frozenset[LineKind | None]] = frozenset({*REACHED, "slow", "unknown host", "disk full"})
"""Kinds of trouble that a chaos experiment makes."""
_TLS_NAME: Final = expression(r"(?i)(?<![a-z])(?:tls|ssl|certs?|certificates?|pki|x509)(?![a-z])")
_UNSET: Final = expression(
    r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b(?!\.\d).{0,40}?"
    r"\b(?:not set|unset|empty|undefined|missing|not defined|not found|absent)\b"
    r"|\b(?:[Ee]mpty|[Nn]o|[Mm]issing|[Uu]nset|[Uu]ndefined|without)\b.{0,30}?\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b"
)
"""A line that reports a variable as missing."""
_NAME: Final = expression(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_PART: Final = expression(r"[a-z]{4,}")
_DAY_SECONDS: Final = 86_400.0
_RARE: Final = 3
_SHORTLY_SECONDS: Final = 300.0
_SOON_SECONDS: Final = 3_600.0
_LACKING: Final = expression(
    r"(?i)\b(?:no|missing|not found|empty|old|older|stale|outdated|expired|newest|lacks?|without)\b"
)
"""Words about data that are missing or old."""
_MADE_BY: Final = expression(
    r"(?i)\b(?:written|made|loaded|imported|filled|produced|created|generated|refreshed|updated|exported|delivered) "
    r"by (?:the )?(?:cron ?)?(?:job )?[\"']?(?P<by>[a-z0-9][a-z0-9-]{2,62})"
    r"|\bjob [\"']?(?P<makes>[a-z0-9][a-z0-9-]{2,62})[\"']? (?:writes|makes|loads|imports|fills|produces|creates"
    r"|generates|refreshes|updates|exports|delivers)\b"
)
"""The job that makes data, as a line tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A setting or an object that explains the lines of a log. `words` is a clause that names the mechanism."""

    culprit: ObjectRef
    words: str
    evidence: tuple[str, ...]


def reason_of(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the setting or the object that explains the trouble."""
    found = (
        _unset_variable(state, trouble),
        rejected_since_edit(state, trouble),
        _expired_certificate(state, trouble),
        _old_setting(state, trouble),
        _experiment(state, trouble),
        _starved(state, trouble) if trouble.group.kind == "slow" else None,
        _refused_eviction(state, trouble),
        _stopped_maker(state, trouble),
        _newer_than_writers(state, trouble),
        _changed_before(state, trouble),
    )
    return next((each for each in found if each is not None), None)


def rejected_since_edit(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the old setting that a server rejects, if the rejections began near its edit and name no other one."""
    reason = _older_than_its_setting(state, trouble.workload) if trouble.group.kind in CREDENTIALS else None
    setting = state.find(reason.culprit) if reason is not None else None
    if reason is None or setting is None:
        return reason
    names = {each.name for each in references_of(template_of(trouble.workload).spec) if each.kind == "Secret"}
    told = {name for name in names if set(_PART.findall(name)) & set(_PART.findall(trouble.group.record.lower()))}
    # An old certificate is rejected when it expires, long after it was renewed.
    sudden = trouble.group.sudden and trouble.group.kind != "tls"
    late = sudden and trouble.group.first - edited_at(setting) > _DAY_SECONDS
    other = bool(told) and setting.name not in told and setting.kind == "Secret"
    return None if late or other else reason


def _refused_eviction(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the disruption budget of the pod that the lines name, if it allows no eviction.

    The lines also name the namespace of the pod, unless it is that of the workload.
    """
    words = {*_NAME.findall(trouble.group.record)} if "disruption budget" in trouble.group.record else set()
    spaces = words | {trouble.workload.namespace}
    for budget in (each for each in state.of("PodDisruptionBudget") if words and each.namespace in spaces):
        pods = state.matched("Pod", budget.namespace, budget.child("spec", "selector"))
        pod = next((each for each in pods if each.name in words), None)
        if pod is not None and not budget.integer("status", "disruptionsAllowed"):
            healthy, desired = (budget.integer("status", f"{each}Healthy") for each in ("current", "desired"))
            text = f"{budget.ref} allows no eviction of {pod.ref}: {healthy} pods are healthy, and {desired} must be"
            return Reason(culprit=budget.ref, words=text, evidence=(f"{budget.ref}, status.disruptionsAllowed: 0",))
    return None


def _stopped_maker(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the job that makes what the lines miss or call old, if it was stopped before they began."""
    record, space = trouble.group.record, trouble.workload.namespace
    for match in _MADE_BY.finditer(record) if _LACKING.search(record) else ():
        name = match["by"] or match["makes"]
        each = state.get("CronJob", space, name) or state.get("Job", space, name)
        stop = stop_of_producer(state, each) if each is not None else None
        if each is not None and stop is not None and (stop.since or 0.0) <= trouble.group.first:
            last = moment(each.text("status", "lastSuccessfulTime"))
            words = f"{each.ref}, which makes it, {stop.words}"
            words += f" and last succeeded {duration(state.now - last)} ago" if last else ""
            shown = (f"{stop.proof.object}, {stop.proof.path}: {stop.proof.value}",)
            return Reason(culprit=each.ref, words=words, evidence=shown)
    return None


def _newer_than_writers(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the setting that changed after exactly those pods started whose logs contain the lines.

    A newer pod must work without such lines, and they must begin soon after the change.
    """
    pods = state.pods_of(trouble.workload)
    stale = {pod.ref: {each.ref: each for each in stale_settings(state, pod)} for pod in pods}
    stories = stories_of(state, trouble.workload)
    template, first = trouble.group.template, trouble.group.first
    writers = {key.pod for key, story in stories if any(each.template == template for each in story.groups)}
    working = {key.pod for key, story in stories if sum(story.time_of(each) >= first for each in story.heads) >= OFTEN}
    for ref, found in stale.get(trouble.key.pod, {}).items():
        old = {pod for pod, settings in stale.items() if ref in settings}
        exactly = writers == old & {key.pod for key, _ in stories}
        if exactly and working - old and 0 <= first - found.edited <= _SOON_SECONDS:
            words = (
                f"only {' and '.join(map(str, sorted(writers)))} of {len(pods)} pods reports this: it still uses the "
                f"old content of {ref}, which was changed at {written(found.edited)}"
            )
            shown = (f"{ref}, last change: {written(found.edited)}", f"{trouble.key.pod}, {found.path}: {ref.name}")
            return Reason(culprit=ref, words=words, evidence=shown)
    return None


def _old_setting(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the setting whose old content running containers still have: a host that they look up, or a value."""
    pods, last = state.pods_of(trouble.workload), trouble.group
    unknown = mentions(last.record) if last.kind == "unknown host" else ()
    hosts = {each.host for each in unknown if not each.doubtful}
    found = [*(old_host(state, pod, host) for pod in pods for host in hosts)]
    found += [old_value(state, pod, last.record) for pod in pods]
    old = next((each for each in found if each is not None), None)
    if old is None or (moment(old.value) or 0.0) > last.last > 0:
        return None
    return Reason(culprit=old.culprit, words=old.words, evidence=(f"{old.culprit}, {old.path}: {old.value}",))


def old_server(state: ClusterState, service: ObjectRef, trouble: Trouble) -> Reason | None:
    """Return the ConfigMap that no longer names a Service which the running containers still call.

    It must name another host and have been changed before the trouble began. A Secret could contain the name, too.
    """
    spec = template_of(trouble.workload).spec
    if any(each.kind == "Secret" and each.use != "pull secret" for each in references_of(spec)):
        return None
    elsewhere = service.namespace != trouble.workload.namespace
    host = f"{service.name}.{service.namespace}" if elsewhere else service.name
    found = (old_host(state, pod, host) for pod in state.pods_of(trouble.workload))
    naming = {named.object for _, named in workload_hosts(state, trouble.workload) if named.object.kind == "ConfigMap"}
    old = next((each for each in found if each is not None and each.culprit in naming), None)
    if old is None or not (moment(old.value) or trouble.group.first) < trouble.group.first:
        return None
    words = f"{trouble.workload.ref} still calls {service}, which its settings no longer name: {old.words}"
    return Reason(culprit=old.culprit, words=words, evidence=(f"{old.culprit}, {old.path}: {old.value}",))


def _unset_variable(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return why a variable is not set that the log reports as missing, before or with the trouble."""
    first = trouble.group.first
    for key, story in stories_of(state, trouble.workload):
        pod = state.find(key.pod)
        container = next((each for each in containers_of(pod) if each.name == key.container), None) if pod else None
        if container is None:
            continue
        for pattern in story.patterns:
            at = story.time_of(pattern.numbers[0]) if pattern.numbers else 0.0
            early = pattern.count <= _RARE and at <= first + 1
            if not (early or pattern.text == trouble.group.template) or not _UNSET.search(pattern.last_line):
                continue
            line = pattern.last_line.strip()
            if does_without(line, trouble.group.record):
                continue
            blamed = unset_variable(line, container, state)
            if blamed is not None:
                said = "" if pattern.text == trouble.group.template else f"its log says: {quoted(line)}; "
                evidence = (f"{blamed.evidence.object}, {blamed.evidence.path}: {blamed.evidence.value}",)
                culprit = blamed.culprit or trouble.workload.ref
                return Reason(culprit=culprit, words=f"{said}{blamed.words}", evidence=evidence)
    return None


def _expired_certificate(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the certificate that has expired according to the lines: that of a Service they name, or the own one."""
    if trouble.group.kind not in ("tls", "clock or token") or not EXPIRED.search(trouble.group.record):
        return None
    services = named_services(state, trouble)
    own = (trouble.workload,) if _TOLD_BY_PEER.search(trouble.group.record) else ()
    servers = [each for service in services for each in behind_service(state, service)] or list(own)
    secrets = {secret for server in servers for secret in _certificates_of(server)} if len(servers) == 1 else set()
    owners = [each.ref for each in servers]
    if not servers:
        found = dict(_certificates_of_hosts(state, trouble))
        secrets, owners = set(found.values()), list(found)
    if len(secrets) != 1:
        return None
    (secret,) = secrets
    maker = next((state.find(ref) for ref in producers_of(state, secret) if ref.kind == "Certificate"), None)
    if maker is not None and text(maker.condition("Ready"), "status") == "True":
        return None
    culprit = maker.ref if maker is not None else secret
    words = f"{secret} holds the certificate of {owners[0]}"
    place = f"{template_of(servers[0]).path}.volumes[].secret.secretName" if servers else "spec.tls[].secretName"
    shown = [f"{owners[0]}, {place}: {secret.name}"]
    if maker is not None:
        until = moment(maker.text("status", "notAfter"))
        if until is not None and until > (trouble.group.last or state.now):
            return None  # this certificate is valid: the lines are about another one
        ready = maker.condition("Ready")
        words += f", which {maker.ref} does not renew: {text(ready, 'message') or text(ready, 'reason')}"
        shown.insert(0, f"{maker.ref}, status.notAfter: {maker.text('status', 'notAfter') or '(not set)'}")
    return Reason(culprit=culprit, words=words, evidence=tuple(shown))


def _certificates_of_hosts(state: ClusterState, trouble: Trouble) -> Iterator[tuple[ObjectRef, ObjectRef]]:
    """Yield the Ingresses that serve the only host in the lines, each with the Secret of the host's certificate."""
    hosts = {each.host for each in mentions(trouble.group.record) if not each.doubtful and "." in each.host}
    if len(hosts) != 1:
        return
    (host,) = hosts
    served = {host, f"*.{host.partition('.')[2]}"}
    for ingress in state.of("Ingress"):
        for tls in ingress.children("spec", "tls"):
            if not served.isdisjoint(texts(tls, "hosts")) and text(tls, "secretName"):
                named = ObjectRef(kind="Secret", namespace=ingress.namespace, name=text(tls, "secretName"))
                yield ingress.ref, named


def _experiment(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the chaos experiment that began to disturb the workload or its servers just before the lines."""
    used = (use.service for use, _ in workload_hosts(state, trouble.workload))
    servers = {each.ref for service in used for each in behind_service(state, service)} | {trouble.workload.ref}
    for each in (*state.custom_resources, *kraken_runs(state)) if trouble.group.kind in _OF_EXPERIMENTS else ():
        begun = -_SHORTLY_SECONDS / 10 <= trouble.group.first - each.created <= _SHORTLY_SECONDS
        hit = servers.intersection(targets_of(state, each)) if begun and is_injected(each) else set()
        if hit:
            what = action_of(each) or each.kind
            by = state.workload_of(each).ref if each.kind == "Pod" else each.ref
            words = f"{by} disturbs {min(hit)} since {written(each.created)} ({what})"
            return Reason(culprit=by, words=words, evidence=(f"{each.ref}, action: {what}",))
    return None


def _starved(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the LimitRange whose default gave a pod little CPU, if this pod was created just before the lines.

    A LimitRange that is older than the workload limited the pods before, too, and did not make them slow.
    """
    used = (use.service for use, _ in workload_hosts(state, trouble.workload))
    servers = (each for service in used for each in behind_service(state, service))
    for workload in dict.fromkeys((trouble.workload, *servers)):
        for pod in state.pods_of(workload):
            young = 0 <= trouble.group.first - pod.created <= 2 * _SHORTLY_SECONDS
            found = _defaulted_cpu(state, workload, pod) if young else None
            if found is not None and max(found[0].created, edited_at(found[0])) > workload.created:
                limits, cpu = found
                words = (
                    f"{limits.ref} gave {pod.ref} the default CPU limit {cpu} when it was created at "
                    f"{written(pod.created)}; the template of {workload.ref} sets none"
                )
                shown = (f"{limits.ref}, spec.limits[].default.cpu: {cpu}", f"{pod.ref}, resources.limits.cpu: {cpu}")
                return Reason(culprit=limits.ref, words=words, evidence=shown)
    return None


def _defaulted_cpu(
    state: ClusterState, workload: ClusterObject, pod: ClusterObject
) -> tuple[ClusterObject, str] | None:
    """Return the LimitRange and the limit that a container has from it, if it is less than a core."""
    own = {text(each, "name"): each for each in children(template_of(workload).spec, "containers")}
    for container in pod.children("spec", "containers"):
        cpu = text(container, "resources", "limits", "cpu")
        asked = text(own.get(text(container, "name"), {}), "resources", "limits", "cpu")
        for limits in state.of("LimitRange", pod.namespace) if cpu and not asked and amount(cpu) < 1 else ():
            if any(text(each, "default", "cpu") == cpu for each in limits.children("spec", "limits")):
                return limits, cpu
    return None


def _certificates_of(workload: ClusterObject) -> set[ObjectRef]:
    """Return the Secrets that a workload mounts and whose name or mount speaks of TLS."""
    spec = template_of(workload).spec
    mounts = {
        text(mount, "name"): text(mount, "mountPath")
        for container in children(spec, "containers")
        for mount in children(container, "volumeMounts")
    }
    return {
        ObjectRef(kind="Secret", namespace=workload.namespace, name=text(volume, "secret", "secretName"))
        for volume in children(spec, "volumes")
        if text(volume, "secret", "secretName")
        and _TLS_NAME.search(f"{text(volume, 'secret', 'secretName')} {mounts.get(text(volume, 'name'), '')}")
    }


def lost_lease(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the Lease that the lines wait for, if it is held by a pod of the workload that does not exist."""
    named = (state.find(ref) for ref in objects_named(state, trouble) if ref.kind == "Lease")
    found = (_without_holder(state, lease, trouble.workload) for lease in named if lease is not None)
    return next((each for each in found if each is not None), None)


def _without_holder(state: ClusterState, lease: ClusterObject, workload: ClusterObject) -> Reason | None:
    held_by = lease.text("spec", "holderIdentity")
    holder = held_by.partition("_")[0]
    if not is_pod_name_of(holder, workload.kind, workload.name) or not state.is_missing("Pod", lease.namespace, holder):
        return None
    renewed = lease.text("spec", "renewTime") or "(not set)"
    evidence = (f"{lease.ref}, spec.holderIdentity: {held_by}", f"{lease.ref}, spec.renewTime: {renewed}")
    words = f"{lease.ref}, for which {workload.ref} waits, is held by {held_by}, which does not exist"
    return Reason(culprit=lease.ref, words=words, evidence=evidence)


def _changed_before(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the only ConfigMap or Secret of the workload that changed shortly before its first line of trouble."""
    first = trouble.group.first
    edits = visible_edits(state, trouble.workload)
    found = {ref: edited for ref, edited in edits if 0 <= first - edited <= _SHORTLY_SECONDS}
    if len(found) != 1:
        return None
    ((ref, edited),) = found.items()
    words = f"{ref} was changed at {written(edited)}, just before the first of these lines"
    return Reason(culprit=ref, words=words, evidence=(f"{ref}, last change: {written(edited)}",))


def waits_for(state: ClusterState, subjects: Sequence[ClusterObject]) -> Reason | None:
    """Return the old setting with which a workload works, although no line of its log reports trouble."""
    found = (_older_than_its_setting(state, workload) for workload in workloads_of(state, subjects))
    return next((each for each in found if each is not None), None)


def _older_than_its_setting(state: ClusterState, workload: ClusterObject) -> Reason | None:
    """Return the ConfigMap or Secret that changed after the containers of all pods started that read it once."""
    pods = state.pods_of(workload)
    stale = [{each.ref: each for each in stale_settings(state, pod)} for pod in pods]
    for ref, found in stale[0].items() if stale else ():
        if all(ref in each for each in stale):
            words = (
                f"{workload.ref} still uses the old content of {ref}, which was changed at {written(found.edited)}: "
                f"its containers started earlier and {found.reading}"
            )
            evidence = (f"{ref}, last change: {written(found.edited)}", f"{pods[0].ref}, {found.path}: {ref.name}")
            return Reason(culprit=ref, words=words, evidence=evidence)
    return None
