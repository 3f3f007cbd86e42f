"""What form of answer a client asks for with `Accept`: objects, a table, or metadata alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from holmes.snapshot.server.failures import ApiFailure

Form: TypeAlias = Literal["object", "table", "metadata", "aggregated"]

JSON: Final = "application/json"
_FORMS: Final[dict[tuple[str, str, str], Form]] = {
    ("Table", "meta.k8s.io", "v1"): "table",
    ("PartialObjectMetadata", "meta.k8s.io", "v1"): "metadata",
    ("PartialObjectMetadataList", "meta.k8s.io", "v1"): "metadata",
    ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2"): "aggregated",
}
_PLAIN: Final = frozenset({JSON, "application/*", "*/*"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The form of the answer, and what its `Content-Type` is."""

    form: Form
    content_type: str


def accepted(header: str, *, forms: tuple[Form, ...]) -> Accepted:
    """The first of the client's wishes that is among `forms`; plain JSON when there is no header.

    Raises `ApiFailure` (406) for a client that takes nothing but other formats.
    """
    wishes = [part.strip() for part in header.split(",") if part.strip()]
    for wish in wishes:
        media, *pieces = (piece.strip() for piece in wish.split(";"))
        if media not in _PLAIN:
            continue
        parameters = dict(piece.partition("=")[::2] for piece in pieces)
        if "as" not in parameters:
            return Accepted(form="object", content_type=JSON)
        form = _FORMS.get((parameters["as"], parameters.get("g", ""), parameters.get("v", "")))
        if form is not None and form in forms:
            return Accepted(form=form, content_type=_content_type(parameters) if form == "aggregated" else JSON)
    if wishes:
        message = f"only the following media types are accepted: {JSON}"
        raise ApiFailure(406, "NotAcceptable", message)
    return Accepted(form="object", content_type=JSON)


def _content_type(parameters: dict[str, str]) -> str:
    return f"{JSON};g={parameters['g']};v={parameters['v']};as={parameters['as']}"
