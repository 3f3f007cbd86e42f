"""Keys of clouds: AWS, Google, Azure, DigitalOcean and smaller ones."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from holmes.redaction.kinds import BASE64_EDGE, EDGE, END, LONG_ARGUMENT, Kind, token


def _mixed(value: str) -> bool:
    """Whether random letters are likely: all of upper case, lower case and digits (a path or a hash has not all)."""
    return any(map(str.isupper, value)) and any(map(str.islower, value)) and any(map(str.isdigit, value))


KINDS: Final = (
    Kind(
        name="aws-access-key-id",
        prefixed=True,
        literals=("IA",),
        gate=re.compile(r"IA[A-Z2-7]{4}"),
        pattern=re.compile(rf"{EDGE}A(?:K|S|B)IA[A-Z2-7]{{16}}{END}"),
    ),
    Kind(
        name="aws-secret-key",
        literals=("IA",),
        gate=re.compile(r"IA[A-Z2-7]{4}"),
        # In tables and CSV files the secret follows its id without a name.
        pattern=re.compile(r"A[KS]IA[A-Z2-7]{16}[\"',;:\s|]{1,8}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"),
        accepts=_mixed,
    ),
    Kind(
        name="aws-session-token",
        long_word=True,
        literals=("Jb3JpZ2lu", "GZXIvYXdz"),
        pattern=re.compile(rf"{BASE64_EDGE}(?:I?QoJb3JpZ2lu|FwoGZXIvYXdz)[A-Za-z0-9+/]{{60,}}+={{0,2}}"),
    ),
    token("google-api-key", "AIza", r"[A-Za-z0-9_\-]{35}"),
    token("google-oauth-token", "ya29.", r"[A-Za-z0-9_\-]{20,}+"),
    token("google-client-secret", "GOCSPX-", r"[A-Za-z0-9_\-]{28}"),
    replace(token("google-refresh-token", "1//0", r"[A-Za-z0-9_\-]{30,}+"), gate=re.compile("/")),
    Kind(
        name="google-key-id",
        literals=("private_key_id",),
        pattern=re.compile(r"private_key_id\\{0,7}[\"']?\s{0,4}[:=]\s{0,4}\\{0,7}[\"']?(?P<secret>[0-9a-f]{40})\b"),
    ),
    Kind(
        name="google-service-account",
        long_word=True,
        literals=("ewogICJ0eXBlIjogInNlcnZp", "eyJ0eXBlIjoic2Vydmlj"),
        pattern=re.compile(
            rf"{BASE64_EDGE}(?:ewogICJ0eXBlIjogInNlcnZpY2VfYWNjb3VudC|eyJ0eXBlIjoic2VydmljZV9hY2NvdW50)"
            r"[A-Za-z0-9+/]{60,}+={0,2}"
        ),
    ),
    Kind(
        name="azure-client-secret",
        literals=("Q~",),
        pattern=re.compile(
            r"(?<![A-Za-z0-9_~.\-])(?P<secret>[A-Za-z0-9_~.\-]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34})(?![A-Za-z0-9_~.\-])"
        ),
    ),
    Kind(
        name="azure-storage-key",
        literals=("=",),
        gate=LONG_ARGUMENT,
        pattern=re.compile(
            r"=(?:(?<=[Aa]ccount[Kk]ey=)|(?<=[Ss]hared[Aa]ccess[Kk]ey=))(?P<secret>[A-Za-z0-9+/]{20,}+={0,2})"
        ),
    ),
    Kind(
        name="azure-shared-access-signature",
        literals=("=",),
        gate=LONG_ARGUMENT,
        pattern=re.compile(r"=(?<=sig=)(?<![A-Za-z0-9_]sig=)(?P<secret>[A-Za-z0-9%+/_\-]{20,}+={0,2})"),
    ),
    token("digitalocean-token", "do[opr]_v1_", r"[0-9a-f]{64}", literals=("dop_v1_", "doo_v1_", "dor_v1_")),
    token("alibaba-key-id", "LTAI", r"[A-Za-z0-9]{16,24}"),
    token("linode-or-cloudflare-origin-key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{140,160}"),
    token("databricks-token", "dapi", r"[0-9a-f]{32}(?:-[0-9])?", long_word=True),
    token("planetscale-token", "pscale_(?:tkn|pw|oauth)_", r"[A-Za-z0-9_\-.]{32,64}", literals=("pscale_",)),
    token("heroku-token", "HRKU-", r"[A-Za-z0-9_\-]{36,64}"),
    token("terraform-cloud-token", r"[A-Za-z0-9]{14}\.atlasv1\.", r"[A-Za-z0-9_\-=]{60,70}", literals=(".atlasv1.",)),
)
