"""Kinds of keys and tokens with a known shape: cloud and service tokens, JWTs, encoded private keys, hashes."""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from typing import Final

from holmes.redaction.kinds import BASE64, BASE64_EDGE, EDGE, END, LONG_ARGUMENT, TOKEN, Kind, starting, token
from holmes.values.expressions import expression


def _decoded_start(value: str, characters: int = 120) -> bytes:
    """Return the first bytes of base64 text, or no bytes if the text is not base64."""
    start = value[: min(characters, len(value))]
    try:
        return base64.b64decode(start[: len(start) // 4 * 4])
    except (ValueError, binascii.Error):
        return b""


def _is_private_key(value: str) -> bool:
    return b"PRIVATE KEY" in _decoded_start(value)


def _is_token(value: str) -> bool:
    return _decoded_start(value, len(value)).count(b".") >= 2


def _has_login(value: str) -> bool:
    """Return whether base64 text is `user:password`."""
    user, colon, password = _decoded_start(value, len(value)).partition(b":")
    return bool(user and colon and password) and user.isascii() and b"\x00" not in user


_DOLLAR: Final = expression(r"\$(?=[a-z0-9])")

_KEYS: Final = (
    Kind(
        name="jwt",
        prefixed=True,
        label=TOKEN,
        literals=("eyJ",),
        pattern=expression(
            starting("eyJ", r"A-Za-z0-9_\-.")
            + r"[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]*+\.[A-Za-z0-9_\-]*+(?:\.[A-Za-z0-9_\-]*+){0,2}"
        ),
    ),
    Kind(
        name="jwt-base64",
        long_word=True,
        label=TOKEN,
        literals=("ZXlK",),
        pattern=expression(starting("ZXlK", BASE64) + r"[A-Za-z0-9+/]{40,}+={0,2}"),
        accepts=_is_token,
    ),
    Kind(
        name="private-key-base64",
        long_word=True,
        label="private-key",
        literals=("LS0tLS1CRUdJTi",),
        pattern=expression(starting("LS0tLS1CRUdJTi", BASE64) + r"[A-Za-z0-9+/]{20,}+={0,2}"),
        accepts=_is_private_key,
    ),
    Kind(
        name="registry-login",
        literals=("auth",),
        folded=True,
        pattern=expression(
            r"auth(?<![a-z0-9_]auth)\\{0,7}[\"']\s{0,4}:\s{0,4}\\{0,7}[\"'](?P<secret>[A-Za-z0-9+/]{4,}+={0,2})\\{0,7}[\"']"
        ),
        accepts=_has_login,
    ),
    Kind(
        name="registry-config-base64",
        long_word=True,
        literals=("eyJhdXRocyI6", "ewogICJhdXRocyI6", "ewoJImF1dGhzIjog"),
        pattern=expression(
            rf"{BASE64_EDGE}(?:eyJhdXRocyI6|ewogICJhdXRocyI6|ewoJImF1dGhzIjog)[A-Za-z0-9+/]{{16,}}+={{0,2}}"
        ),
    ),
    token("age-secret-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    Kind(
        name="bcrypt-hash",
        label="password-hash",
        literals=("$2",),
        gate=_DOLLAR,
        pattern=expression(r"\$2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}(?![./A-Za-z0-9])"),
    ),
    Kind(
        name="crypt-hash",
        label="password-hash",
        literals=("$",),
        gate=_DOLLAR,
        pattern=expression(
            r"\$(?:1|5|6|7|y|gy|apr1)\$(?:rounds=[0-9]{1,9}\$|j[./A-Za-z0-9]{1,8}\$)?[./A-Za-z0-9]{1,64}\$[./A-Za-z0-9]{22,}+"
        ),
    ),
    Kind(
        name="argon2-hash",
        label="password-hash",
        literals=("$",),
        gate=_DOLLAR,
        pattern=expression(r"\$(?:argon2(?:id|i|d)|scrypt|pbkdf2(?:-sha[0-9]{1,3})?)\$[A-Za-z0-9+/=,.$\-]{20,}+"),
    ),
    Kind(
        name="scram-verifier",
        label="password-hash",
        literals=("SCRAM-SHA-256$",),
        pattern=expression(
            r"SCRAM-SHA-256\$[0-9]{1,9}:[A-Za-z0-9+/=]{8,64}"
            r"\$[A-Za-z0-9+/=]{20,64}:[A-Za-z0-9+/=]{20,64}"
        ),
    ),
    Kind(
        name="ldap-hash",
        label="password-hash",
        literals=("{SSHA", "{SHA", "{SMD5", "{MD5", "{CRYPT", "{PLAIN}", "{CLEARTEXT}"),
        pattern=expression(
            r"\{(?:SSHA(?:256|512)?|SHA|SMD5|MD5|CRYPT|PLAIN|CLEARTEXT)\}(?P<secret>(?<=T\}|N\})[^\s\"'\\]{4,100}|[A-Za-z0-9+/.$=]{20,}+)"
        ),
    ),
    Kind(
        name="bootstrap-token",
        label=TOKEN,
        literals=("token",),
        gate=expression(r"\.[a-z0-9]{16}(?![A-Za-z0-9])"),
        pattern=expression(
            r"token(?:(?<=--token)|(?<=[Uu]sing token)|(?<=bootstrap[ \-]token))[=: ][^\n]{0,40}?"
            rf"(?<![A-Za-z0-9.\-])(?P<secret>[a-z0-9]{{6}}\.[a-z0-9]{{16}}){END}"
        ),
    ),
    Kind(
        name="ssh-legacy-ppk",
        literals=("PuTTY-User-Key-File",),
        pattern=expression(
            rf"{EDGE}Private-Lines: [0-9]{{1,3}}\r?\n(?P<secret>(?:[A-Za-z0-9+/=]{{4,80}}\r?\n){{1,99}})"
        ),
    ),
)


def _mixed(value: str) -> bool:
    """Return whether the text mixes upper case, lower case and digits. Paths and hashes lack at least one of these."""
    return any(map(str.isupper, value)) and any(map(str.islower, value)) and any(map(str.isdigit, value))


_CLOUDS: Final = (
    Kind(
        name="aws-access-key-id",
        prefixed=True,
        literals=("IA",),
        gate=expression(r"IA[A-Z2-7]{4}"),
        pattern=expression(rf"{EDGE}A(?:K|S|B)IA[A-Z2-7]{{16}}{END}"),
    ),
    Kind(
        name="aws-secret-key",
        literals=("IA",),
        gate=expression(r"IA[A-Z2-7]{4}"),
        # In tables and CSV files, the secret follows its id without a name.
        pattern=expression(r"A[KS]IA[A-Z2-7]{16}[\"',;:\s|]{1,8}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"),
        accepts=_mixed,
    ),
    Kind(
        name="aws-session-token",
        long_word=True,
        literals=("Jb3JpZ2lu", "GZXIvYXdz"),
        pattern=expression(rf"{BASE64_EDGE}(?:I?QoJb3JpZ2lu|FwoGZXIvYXdz)[A-Za-z0-9+/]{{60,}}+={{0,2}}"),
    ),
    token("google-api-key", "AIza", r"[A-Za-z0-9_\-]{35}"),
    token("google-oauth-token", "ya29.", r"[A-Za-z0-9_\-]{20,}+"),
    token("google-client-secret", "GOCSPX-", r"[A-Za-z0-9_\-]{28}"),
    replace(token("google-refresh-token", "1//0", r"[A-Za-z0-9_\-]{30,}+"), gate=expression("/")),
    Kind(
        name="google-key-id",
        literals=("private_key_id",),
        pattern=expression(r"private_key_id\\{0,7}[\"']?\s{0,4}[:=]\s{0,4}\\{0,7}[\"']?(?P<secret>[0-9a-f]{40})\b"),
    ),
    Kind(
        name="google-service-account",
        long_word=True,
        literals=("ewogICJ0eXBlIjogInNlcnZp", "eyJ0eXBlIjoic2Vydmlj"),
        pattern=expression(
            rf"{BASE64_EDGE}(?:ewogICJ0eXBlIjogInNlcnZpY2VfYWNjb3VudC|eyJ0eXBlIjoic2VydmljZV9hY2NvdW50)"
            r"[A-Za-z0-9+/]{60,}+={0,2}"
        ),
    ),
    Kind(
        name="azure-client-secret",
        literals=("Q~",),
        pattern=expression(
            r"(?<![A-Za-z0-9_~.\-])(?P<secret>[A-Za-z0-9_~.\-]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34})(?![A-Za-z0-9_~.\-])"
        ),
    ),
    Kind(
        name="azure-storage-key",
        literals=("=",),
        gate=LONG_ARGUMENT,
        pattern=expression(
            r"=(?:(?<=[Aa]ccount[Kk]ey=)|(?<=[Ss]hared[Aa]ccess[Kk]ey=))(?P<secret>[A-Za-z0-9+/]{20,}+={0,2})"
        ),
    ),
    Kind(
        name="azure-shared-access-signature",
        literals=("=",),
        gate=LONG_ARGUMENT,
        pattern=expression(r"=(?<=sig=)(?<![A-Za-z0-9_]sig=)(?P<secret>[A-Za-z0-9%+/_\-]{20,}+={0,2})"),
    ),
    token("digitalocean-token", "do[opr]_v1_", r"[0-9a-f]{64}", literals=("dop_v1_", "doo_v1_", "dor_v1_")),
    token("alibaba-key-id", "LTAI", r"[A-Za-z0-9]{16,24}"),
    token("linode-or-cloudflare-origin-key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{140,160}"),
    token("databricks-token", "dapi", r"[0-9a-f]{32}(?:-[0-9])?", long_word=True),
    token("planetscale-token", "pscale_(?:tkn|pw|oauth)_", r"[A-Za-z0-9_\-.]{32,64}", literals=("pscale_",)),
    token("heroku-token", "HRKU-", r"[A-Za-z0-9_\-]{36,64}"),
    token("terraform-cloud-token", r"[A-Za-z0-9]{14}\.atlasv1\.", r"[A-Za-z0-9_\-=]{60,70}", literals=(".atlasv1.",)),
)


_GITLAB: Final = ("pat", "dt", "rt", "ptt", "cbt", "ft", "imt", "agent", "soat")

_SERVICES: Final = (
    token("github-token", "gh[pousr]_", r"[A-Za-z0-9]{36,251}", literals=("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    token("github-fine-grained-token", "github_pat_", r"[A-Za-z0-9_]{36,120}"),
    token(
        "gitlab-token",
        f"gl(?:{'|'.join(_GITLAB)})-",
        r"[A-Za-z0-9_\-.]{20,60}",
        literals=tuple(f"gl{kind}-" for kind in _GITLAB),
    ),
    token("npm-token", "npm_", r"[A-Za-z0-9]{36}"),
    token("pypi-token", "pypi-", r"[A-Za-z0-9_\-]{50,}+"),
    token("rubygems-token", "rubygems_", r"[0-9a-f]{48}"),
    token("docker-hub-token", "dckr_(?:pat|oat)_", r"[A-Za-z0-9_\-]{27,40}", literals=("dckr_pat_", "dckr_oat_")),
    token("atlassian-token", "ATATT3", r"[A-Za-z0-9_\-=]{60,}+"),
    token("bitbucket-token", "ATBB", r"[A-Za-z0-9]{32}"),
    token("sonarqube-token", "sq[pua]_", r"[0-9a-f]{40}", literals=("sqp_", "squ_", "sqa_")),
    token("buildkite-token", "bkua_", r"[0-9a-f]{40}"),
    token(
        "argocd-or-harness-token", "pat\\.", r"[A-Za-z0-9_\-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}", literals=("pat.",)
    ),
    token("pulumi-token", "pul-", r"[0-9a-f]{40}"),
    token("anthropic-key", "sk-ant-", r"[A-Za-z0-9_\-]{24,}+"),
    Kind(
        name="openai-key",
        prefixed=True,
        literals=("sk-",),
        pattern=expression(
            rf"{EDGE}sk-(?!ant-)(?:(?:proj|svcacct|admin|or-v1|None)-[A-Za-z0-9_\-]{{20,}}+|[A-Za-z0-9]{{20,}}+){END}"
        ),
    ),
    token("hugging-face-token", "hf_", r"[A-Za-z0-9]{30,40}"),
    token("groq-key", "gsk_", r"[A-Za-z0-9]{40,60}"),
    token("xai-key", "xai-", r"[A-Za-z0-9]{60,100}"),
    token("replicate-token", "r8_", r"[A-Za-z0-9]{30,50}"),
    token("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,60}"),
    token("langsmith-key", "lsv2_", r"(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    token(
        "slack-token",
        "xox[abeoprs](?:\\.xox[bp])?-",
        r"[A-Za-z0-9\-]{10,}+",
        literals=tuple(f"xox{kind}-" for kind in "abeoprs"),
    ),
    token("slack-app-token", "xapp-", r"[0-9]-[A-Za-z0-9]+-[0-9]+-[a-z0-9]{20,}+"),
    Kind(
        name="slack-webhook",
        literals=("hook",),
        pattern=expression(r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9_/\-]{20,}+)"),
    ),
    Kind(
        name="discord-webhook",
        literals=("hook",),
        pattern=expression(r"discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/(?P<secret>[A-Za-z0-9_\-]{20,}+)"),
    ),
    Kind(
        name="teams-webhook",
        literals=("hook",),
        pattern=expression(r"webhook\.office\.com/webhookb2/(?P<secret>[A-Za-z0-9@_/\-]{20,}+)"),
    ),
    Kind(
        name="discord-bot-token",
        literals=(".",),
        before=r"\.[A-Za-z0-9_\-]{6}\.",
        gate=expression(r"\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27}"),
        pattern=expression(rf"{EDGE}[MNO][A-Za-z0-9]{{23,27}}\.[A-Za-z0-9_\-]{{6}}\.[A-Za-z0-9_\-]{{27,38}}{END}"),
    ),
    Kind(
        name="telegram-bot-token",
        literals=(":AA",),
        pattern=expression(rf"(?:(?<![A-Za-z0-9])|(?<=bot))[0-9]{{8,10}}:AA[A-Za-z0-9_\-]{{33}}{END}"),
    ),
    token("stripe-key", "(?:sk|rk)_(?:live|test)_", r"[A-Za-z0-9]{16,250}", literals=("k_live_", "k_test_")),
    token("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/]{24,64}"),
    Kind(
        name="twilio-key",
        long_word=True,
        literals=("SK",),
        gate=expression(r"K[0-9a-f]{32}"),
        pattern=expression(rf"{EDGE}SK[0-9a-f]{{32}}{END}"),
    ),
    token("sendgrid-key", "SG.", r"[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{32,64}"),
    token("mailgun-key", "key-", r"[0-9a-f]{32}"),
    token("mailchimp-key", "[0-9a-f]{32}-us", r"[0-9]{1,2}", literals=("-us",), long_word=True),
    token("square-token", "(?:sq0atp|sq0csp|EAAA)-?", r"[A-Za-z0-9_\-]{22,60}", literals=("sq0atp-", "sq0csp-")),
    token(
        "shopify-token", "shp(?:at|ca|pa|ss)_", r"[0-9a-fA-F]{32}", literals=("shpat_", "shpca_", "shppa_", "shpss_")
    ),
    token("vault-token", "hv[sbr]\\.", r"[A-Za-z0-9_\-]{24,}+", literals=("hvs.", "hvb.", "hvr.")),
    Kind(
        name="vault-legacy-token",
        literals=("s.",),
        before=r"(?<![A-Za-z0-9_\-./])s\.",
        pattern=expression(
            r"(?<![A-Za-z0-9_\-./])s\.(?=[a-z0-9]*[A-Z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{24}(?![A-Za-z0-9_\-.])"
        ),
    ),
    Kind(
        name="vault-unseal-key",
        literals=("Unseal Key",),
        pattern=expression(r"Unseal Key [0-9]{1,2}(?: \([a-z ]{1,20}\))?: {1,4}(?P<secret>[A-Za-z0-9+/=]{30,90})"),
    ),
    token("grafana-token", "gl(?:sa|c)_", r"[A-Za-z0-9_]{32,}+={0,2}", literals=("glsa_", "glc_")),
    token("grafana-api-key", "eyJrIjoi", r"[A-Za-z0-9+/]{30,}+={0,2}"),
    token("new-relic-key", "NRA[KAL]-", r"[A-Z0-9]{24,44}", literals=("NRAK-", "NRAA-", "NRAL-")),
    token("new-relic-license-key", "(?:eu01xx)?[0-9a-f]{36,40}", r"(?:NRAL)", literals=("NRAL",)),
    token("dynatrace-token", "dt0[cs]01\\.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}", literals=("dt0c01.", "dt0s01.")),
    token("sentry-token", "sntry[su]_", r"[A-Za-z0-9+/=_]{40,250}", literals=("sntrys_", "sntryu_")),
    Kind(
        name="sentry-dsn",
        literals=("@",),
        gate=expression("@"),
        pattern=expression(r"://(?P<secret>[0-9a-f]{32}(?::[0-9a-f]{32})?)@[a-z0-9.\-]{3,100}/[0-9]"),
    ),
    token("pagerduty-or-postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    token("linear-key", "lin_(?:api|oauth)_", r"[A-Za-z0-9]{32,64}", literals=("lin_api_", "lin_oauth_")),
    token("notion-token", "ntn_", r"[A-Za-z0-9]{40,50}"),
    token(
        "doppler-token",
        "dp\\.(?:pt|st|ct|sa|scim|audit)\\.",
        r"(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{40,44}",
        literals=tuple(f"dp.{kind}." for kind in ("pt", "st", "ct", "sa", "scim", "audit")),
    ),
    token("onepassword-token", "ops_eyJ", r"[A-Za-z0-9+/_\-]{60,}+={0,2}"),
    token("tailscale-key", "tskey-", r"[a-z]{3,10}-[A-Za-z0-9]{5,30}(?:-[A-Za-z0-9]{10,40})?"),
)

KINDS: Final = (*_CLOUDS, *_KEYS, *_SERVICES)
