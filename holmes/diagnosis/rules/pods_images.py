"""Rules for images that cannot be pulled."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.changes import ABSENT, last_rollout
from holmes.diagnosis.facts.evidence import event, spec_field, value
from holmes.diagnosis.facts.fixes import corrected, provided
from holmes.diagnosis.facts.pods import SAYS_NOTHING, container_field, container_words, containers_of, troubled_pods
from holmes.diagnosis.facts.renewals import failed_writers
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.typos import meant, nearest
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import children, text, texts
from holmes.values.expressions import expression
from holmes.values.findings import FixStep, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.pods import Container
    from holmes.diagnosis.facts.renewals import FailedWriter
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject


_PullProblem: TypeAlias = Literal[
    "name",
    "never",
    "rate",
    "platform",
    "certificate",
    "plain",
    "disk",
    "signature",
    "dns",
    "access",
    "tag",
    "network",
    "other",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PullError:
    """A category of pull errors.

    `title` is the title of the finding. `words` is the text that follows the image name in the cause.
    """

    problem: _PullProblem
    title: str
    words: str


def _error(problem: _PullProblem, title: str, words: str) -> _PullError:
    return _PullError(problem=problem, title=title, words=words)


_BY_PATTERN: Final = (
    (
        r"invalidimagename|invalid reference format|couldn't parse image|must be lowercase",
        _error("name", "Image name is not valid", "is not a valid image name"),
    ),
    (
        r"errimageneverpull|pull policy of never",
        _error(
            "never",
            "Image cannot be pulled: its pull policy is Never",
            "is not on the node, and imagePullPolicy is Never",
        ),
    ),
    (
        r"toomanyrequests|too many requests|\b429\b|rate limit",
        _error(
            "rate",
            "Image cannot be pulled: the registry limits requests",
            "cannot be pulled now, because the registry limits requests",
        ),
    ),
    (
        r"no match for platform|no matching manifest|does not match the specified platform|wrong architecture",
        _error(
            "platform",
            "Image cannot be pulled: it is not built for the platform of the node",
            "does not exist for the platform of the node",
        ),
    ),
    (
        r"x509|certificate",
        _error(
            "certificate",
            "Image cannot be pulled: the certificate of the registry is rejected",
            "is in a registry whose certificate the node does not accept",
        ),
    ),
    (
        r"server gave http response to https client",
        _error(
            "plain",
            "Image cannot be pulled: the registry uses plain HTTP",
            "is in a registry that uses plain HTTP, which the container runtime rejects",
        ),
    ),
    (
        r"no space left on device|disk quota",
        _error("disk", "Image cannot be pulled: the node has no space left", "does not fit on the node's disk"),
    ),
    (
        r"signaturevalidationfailed|signature",
        _error("signature", "Image cannot be pulled: its signature is not valid", "has no valid signature"),
    ),
    (
        r"no such host|lookup [^ ]{1,253}(?: on [^ ]{1,80})?:|name resolution",
        _error(
            "dns",
            "Image cannot be pulled: the name of the registry is unknown",
            "is in a registry whose name the node cannot resolve",
        ),
    ),
    (
        r"denied|may require|authorization failed|unauthorized|\b40[13]\b|no basic auth|authentication req|forbidden",
        _error(
            "access",
            "Image cannot be pulled: the registry denies access",
            "cannot be accessed in the registry: it does not exist, or the credentials are missing or wrong",
        ),
    ),
    (
        r"manifest unknown|not found|name unknown|\b404\b|does not exist|failed to resolve reference.{0,400}not found",
        _error("tag", "Image cannot be pulled: the tag or repository is not found", "does not exist in the registry"),
    ),
    (
        r"timed? ?out|connection re|deadline|unreachable|no route|registryunavailable|dial tcp|\beof\b|\b50[0234]\b",
        _error(
            "network",
            "Image cannot be pulled: the registry is not reachable",
            "is in a registry that does not respond",
        ),
    ),
)
_COMPILED: Final = tuple((expression(pattern), error) for pattern, error in _BY_PATTERN)
_OTHER: Final = _error("other", "Image cannot be pulled", "cannot be pulled")


def _pull_error(reason: str, message: str, image: str) -> _PullError:
    """Classify a pull error. Ignores the image name in the message, because the name may contain a matching word."""
    repository = image.partition("@")[0].rpartition(":")[0] or image
    lower = f"{reason} {message[:4_000].replace(image, ' ').replace(repository, ' ')}".lower()
    return next((error for pattern, error in _COMPILED if pattern.search(lower)), _OTHER)


_REASONS: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_ANSWER: Final = expression(r"\b40[13] [A-Z][a-z]+\b")
"""The status with which a registry denies access."""
_REJECTED: Final = expression(
    r"(?i)(?<!certificate has )(?<!out )(?<![\w.=-])(?:expired|401|unauthorized)(?![\w-]|\.\w)|authentication required"
    r"|no basic auth|invalid (?:token|credentials)"
)
"""Answers of a registry that rejects the credentials themselves."""
_WITHOUT: Final = "Image cannot be pulled: the pull secret is missing"
_NOT_RENEWED: Final = "Image cannot be pulled: the pull secret is no longer renewed"
_SECRET_EVENT: Final = expression(r"pull secrets \(([^)]{1,500})\)")


@Row(
    id="P04",
    title="Image cannot be pulled",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "status.containerStatuses[].state.waiting",
        "spec.containers[].image",
        "spec.containers[].imagePullPolicy",
        "spec.imagePullSecrets",
        "events Failed, FailedToRetrieveImagePullSecret",
    ),
    explanation=(
        "The node cannot pull the image of a container. The response of the registry shows the cause. The tag or "
        "repository does not exist, or access is denied. When access is denied, the rule checks the pull secrets of "
        "the pod and its ServiceAccount, and whether the CronJob that renews them fails. The registry may also be "
        "unreachable, limit requests, have an untrusted certificate, or have no image for the platform of the node. "
        "InvalidImageName means that the image reference is not valid. ErrImageNeverPull means that the image is not "
        "on the node and imagePullPolicy is Never. Tags of the same image that other containers use are shown for "
        "comparison."
    ),
)
def image_not_pulled(state: ClusterState) -> Iterator[Fault]:
    known: dict[str, set[str]] | None = None
    for pod in troubled_pods(state):
        for container in containers_of(pod):
            reason = text(container.waiting, "reason")
            if reason not in _REASONS and not reason.startswith("ErrImage"):
                continue
            known = _known_tags(state) if known is None else known
            yield _fault(container, known, state)


def _fault(container: Container, known: dict[str, set[str]], state: ClusterState) -> Fault:
    pod, image = container.pod, text(container.spec, "image")
    reason, message = text(container.waiting, "reason"), _message(container, state)
    error = _pull_error(reason, message, image)
    secret = _missing_pull_secret(pod, state) if error.problem not in {"name", "never", "tag", "platform"} else None
    words = error.words
    culprit, extra, proof = secret or (None, _extra(container, error, known, state), ())
    writer = _failed_writer(container, message, state) if error.problem == "access" and secret is None else None
    if writer is not None:
        culprit, proof = writer.producer.ref, (writer.stop.proof, writer.place)
        words = f"is refused: {culprit}, which renews the pull secret {writer.secret}, {writer.stop.words}"
        extra = ""
    place = "imagePullPolicy" if error.problem == "never" else "image"
    other = "image" if error.problem == "never" else ""
    return Fault(
        subject=pod.ref,
        culprit=culprit,
        title=_WITHOUT if secret else _NOT_RENEWED if writer is not None else error.title,
        cause=f"The image {image} of {container_words(container, state)} {words}{extra}",
        evidence=(
            *proof,
            container_field(container, state, place),
            *((container_field(container, state, other),) if other else ()),
            container.evidence("state", "waiting", "reason"),
            *((value(pod, "message of the node", message),) if message else ()),
        ),
        next_check=f"kubectl -n {pod.namespace} describe pod {pod.name}",
        because=writer.stop.because if writer is not None else (),
        since=pod.created,
        fix=(_secret_fix(proof[0], culprit, pod, state),) if secret else (),
    )


def _failed_writer(container: Container, message: str, state: ClusterState) -> FailedWriter | None:
    """Return the CronJob or Job that no longer renewed a pull secret when the registry first rejected its token.

    A registry also denies access to a repository that does not exist. This says nothing about the token.
    """
    pod = container.pod
    if _REJECTED.search(message.replace(text(container.spec, "image"), " ")) is None:
        return None
    names = [text(each, "name") for each in _pull_secrets(pod, state) or ()]
    registry = text(container.spec, "image").partition("/")[0]
    failed = [each.first for each in state.events_of(pod, "Failed") if _is_about(each, container)]
    since = min(failed, default=pod.created) if pod.text("status", "phase") == "Running" else pod.created
    found = (each for name in names for each in failed_writers(state, pod.namespace, name, registry, since))
    return next(found, None)


def _secret_fix(named: Evidence, missing: ObjectRef | None, pod: ClusterObject, state: ClusterState) -> FixStep | None:
    if missing is not None:
        return provided(missing, state.workload_of(pod).ref)
    right = meant(named.value, [each.name for each in state.of("Secret", pod.namespace)])
    return corrected(named, right) if right else None


def _message(container: Container, state: ClusterState) -> str:
    """Return the pull error from the status, or from the newest event if the status reports only a back-off."""
    waiting = text(container.waiting, "message")
    events = [
        each.message
        for each in state.events_of(container.pod, "Failed", "InspectFailed", "ErrImageNeverPull")
        if _is_about(each, container) and "pull" in each.message.lower()
    ]
    told = (waiting, *reversed(events))
    return next((each for each in told if each and not SAYS_NOTHING.match(each)), waiting)


def _is_about(found: ClusterEvent, container: Container) -> bool:
    """Return whether an event is about a container: by its field, or by the image if it has no field."""
    named = found.field_path.endswith(f"{{{container.name}}}")
    return named or (not found.field_path and f'"{text(container.spec, "image")}"' in found.message)


def _extra(container: Container, error: _PullError, known: dict[str, set[str]], state: ClusterState) -> str:
    """Describe facts that help to find the cause: the previous image, existing tags, or missing pull secrets."""
    image = text(container.spec, "image")
    before = _image_before(container, state)
    said = f"; before the last rollout it was {before}" if before else ""
    if error.problem in {"tag", "never", "dns", "network", "access", "name"} and not said:
        repository, tag = _split(image)
        tags = known.get(repository, set()) - {tag}
        near = nearest(tag, tags) if tags else None
        if tags:
            said = f"; the cluster has {repository} with tag {near or max(tags)}"
        elif repository not in known:
            other = nearest(repository, known)
            said = f"; the closest image in the cluster is {other}" if other else ""
    if error.problem == "access":
        answer = _ANSWER.search(_message(container, state).replace(image, " "))
        said += f"; it answered {answer[0]}" if answer else ""
        said += _secrets_in_use(container, state)
    return said


def _secrets_in_use(container: Container, state: ClusterState) -> str:
    """Tell which pull secrets the pod uses, and which one a ready pod uses for the same registry."""
    pod = container.pod
    if _pull_secrets(pod, state) == ():
        return "; neither the pod nor its ServiceAccount has imagePullSecrets"
    own = {text(each, "name") for each in pod.children("spec", "imagePullSecrets")}
    if not own:
        return ""
    said = f"; the pull secret of the pod is {', '.join(sorted(own))}"
    registry = text(container.spec, "image").partition("/")[0]
    for other in state.of("Pod", pod.namespace):
        images = [text(each, "image") for each in children(other.body, "spec", "containers")]
        others = {text(each, "name") for each in other.children("spec", "imagePullSecrets")} - own
        works = pod_ready(other)
        if works and others and any(image.startswith(f"{registry}/") for image in images):
            return f"{said}, and {state.workload_of(other).ref} pulls from {registry} with {', '.join(sorted(others))}"
    return said


def _image_before(container: Container, state: ClusterState) -> str:
    workload = state.workload_of(container.pod)
    rollout = last_rollout(state, workload) if workload.kind == "Deployment" else None
    if rollout is None or container.pod.owner is None or rollout[0].uid != container.pod.owner.uid:
        return ""
    image = text(container.spec, "image")
    olds = (each.old for each in rollout[2] if each.path.endswith(".image") and each.new == image)
    return next((old for old in olds if old != ABSENT), "")


def _missing_pull_secret(
    pod: ClusterObject, state: ClusterState
) -> tuple[ObjectRef | None, str, tuple[Evidence, ...]] | None:
    """Return the culprit, description and evidence for the pod's first missing pull secret, or None."""
    events = state.events_of(pod, "FailedToRetrieveImagePullSecret")
    for index, secret in enumerate(pod.children("spec", "imagePullSecrets")):
        name = text(secret, "name")
        told = [each for each in events if _tells(each, name)]
        if not name or not (state.is_missing("Secret", pod.namespace, name) or told):
            continue
        existing = [each.name for each in state.of("Secret", pod.namespace)]
        typo = meant(name, existing)
        culprit = None if typo else ObjectRef(kind="Secret", namespace=pod.namespace, name=name)
        near = f"; did you mean Secret {typo}?" if typo else ""
        proof = (spec_field(pod, state, f"imagePullSecrets[{index}].name"), *(event(each) for each in told[-1:]))
        return culprit, f"; its pull secret {pod.namespace}/{name} does not exist{near}", proof
    return None


def _tells(found: ClusterEvent, name: str) -> bool:
    match = _SECRET_EVENT.search(found.message)
    return match is not None and name in [each.strip() for each in match[1].split(",")]


def _pull_secrets(pod: ClusterObject, state: ClusterState) -> tuple[JsonObject, ...] | None:
    """Return the pull secrets of the pod, or else of its ServiceAccount. Returns None if this account is unknown."""
    own = tuple(pod.children("spec", "imagePullSecrets"))
    if own:
        return own
    account = state.get("ServiceAccount", pod.namespace, pod.text("spec", "serviceAccountName") or "default")
    return None if account is None else tuple(account.children("imagePullSecrets"))


def _known_tags(state: ClusterState) -> dict[str, set[str]]:
    """Return the image tags that are stored on nodes or used by ready containers, by repository."""
    known: dict[str, set[str]] = defaultdict(set)
    images = {
        name for node in state.of("Node") for each in node.children("status", "images") for name in texts(each, "names")
    }
    for pod in state.of("Pod"):
        ready = {
            text(each, "name") for each in pod.children("status", "containerStatuses") if each.get("ready") is True
        }
        images |= {
            text(each, "image") for each in children(pod.body, "spec", "containers") if text(each, "name") in ready
        }
    for image in images:
        repository, tag = _split(image)
        if tag:
            known[repository].add(tag)
    return known


def _split(image: str) -> tuple[str, str]:
    """Split an image name into its repository and its tag. A digest is not a tag."""
    name, _, digest = image.partition("@")
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        return name, "" if digest else "latest"
    return repository, tag
