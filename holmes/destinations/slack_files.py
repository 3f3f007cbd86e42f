"""Adds pictures to the thread of an incident. Slack takes a file in three steps: an upload URL, the bytes, the message.

This requires the scope `files:write`. A picture never delays the next notification. A failed picture is tried again
with the next attempt, and then left out with a line in the log.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Final

from holmes.destinations.slack_api import SlackFailed
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Collection

    from holmes.destinations.destination import IncidentNews, PictureNews
    from holmes.destinations.slack_api import SlackApi

_ALT_CHARACTERS: Final = 1_000
_MEDIA_TYPE: Final = "image/png"
_PASSING: Final = frozenset({"", "ratelimited", "internal_error", "fatal_error", "service_unavailable"})
"""Error codes of failures that may pass. A failed connection has an empty code."""
_log = logging.getLogger(__name__)


def file_name(news: IncidentNews, picture: PictureNews) -> str:
    """Return the name of the file. After a lost response, the picture is recognised by it."""
    return f"holmes-{hashlib.sha256(f'{news.key}#{picture.id}'.encode()).hexdigest()[:16]}.png"


async def post_pictures(
    api: SlackApi, news: IncidentNews, *, channel: str, ts: str, sent: Collection[str]
) -> tuple[str, ...]:
    """Add the pictures of an answer to a thread, and return the names of the files that arrived with this call.

    Raises `SlackFailed` if a picture failed for the first time and may succeed the next time.
    """
    pictures = news.investigation.pictures if news.kind == "answered" and news.investigation is not None else ()
    arrived = list[str]()
    for picture in pictures:
        name = file_name(news, picture)
        if name in sent:
            continue
        try:
            await _post(api, picture, name, channel, ts)
        except SlackFailed as failure:
            if failure.retryable and failure.code in _PASSING and not news.repeated:
                raise
            advice = "; add the scope `files:write` to the app" if failure.code == "missing_scope" else ""
            reason = failure.code or str(failure)
            _log.warning("%s: a picture of incident %s is left out: %s%s", api.name, news.incident_id, reason, advice)
            break  # the other pictures have the same fault
        arrived.append(name)
    return tuple(arrived)


async def _post(api: SlackApi, picture: PictureNews, name: str, channel: str, ts: str) -> None:
    alt = shortened(picture.alt, _ALT_CHARACTERS)
    place = await api.read(
        "files.getUploadURLExternal", {"filename": name, "length": str(len(picture.content)), "alt_txt": alt}
    )
    url, identity = place.get("upload_url"), place.get("file_id")
    if not isinstance(url, str) or not isinstance(identity, str):
        raise SlackFailed(f"{api.name}: Slack's response has no `upload_url`; check `api_url`", retryable=False)
    await api.upload(url, picture.content, _MEDIA_TYPE)
    files = json.dumps([{"id": identity, "title": picture.title}])
    await api.read("files.completeUploadExternal", {"files": files, "channel_id": channel, "thread_ts": ts})
