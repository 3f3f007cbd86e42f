"""Tokens of services that a cluster talks to: code forges, build systems, model providers, chat, payment, mail."""

from __future__ import annotations

import re
from typing import Final

from holmes.redaction.kinds import EDGE, END, Kind, token

_GITLAB: Final = ("pat", "dt", "rt", "ptt", "cbt", "ft", "imt", "agent", "soat")

KINDS: Final = (
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
        pattern=re.compile(
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
        pattern=re.compile(r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9_/\-]{20,}+)"),
    ),
    Kind(
        name="discord-webhook",
        literals=("hook",),
        pattern=re.compile(r"discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/(?P<secret>[A-Za-z0-9_\-]{20,}+)"),
    ),
    Kind(
        name="teams-webhook",
        literals=("hook",),
        pattern=re.compile(r"webhook\.office\.com/webhookb2/(?P<secret>[A-Za-z0-9@_/\-]{20,}+)"),
    ),
    Kind(
        name="discord-bot-token",
        literals=(".",),
        before=r"\.[A-Za-z0-9_\-]{6}\.",
        gate=re.compile(r"\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27}"),
        pattern=re.compile(rf"{EDGE}[MNO][A-Za-z0-9]{{23,27}}\.[A-Za-z0-9_\-]{{6}}\.[A-Za-z0-9_\-]{{27,38}}{END}"),
    ),
    Kind(
        name="telegram-bot-token",
        literals=(":AA",),
        pattern=re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=bot))[0-9]{{8,10}}:AA[A-Za-z0-9_\-]{{33}}{END}"),
    ),
    token("stripe-key", "(?:sk|rk)_(?:live|test)_", r"[A-Za-z0-9]{16,250}", literals=("k_live_", "k_test_")),
    token("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/]{24,64}"),
    Kind(
        name="twilio-key",
        long_word=True,
        literals=("SK",),
        gate=re.compile(r"K[0-9a-f]{32}"),
        pattern=re.compile(rf"{EDGE}SK[0-9a-f]{{32}}{END}"),
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
        pattern=re.compile(
            r"(?<![A-Za-z0-9_\-./])s\.(?=[a-z0-9]*[A-Z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{24}(?![A-Za-z0-9_\-.])"
        ),
    ),
    Kind(
        name="vault-unseal-key",
        literals=("Unseal Key",),
        pattern=re.compile(r"Unseal Key [0-9]{1,2}(?: \([a-z ]{1,20}\))?: {1,4}(?P<secret>[A-Za-z0-9+/=]{30,90})"),
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
        gate=re.compile("@"),
        pattern=re.compile(r"://(?P<secret>[0-9a-f]{32}(?::[0-9a-f]{32})?)@[a-z0-9.\-]{3,100}/[0-9]"),
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
