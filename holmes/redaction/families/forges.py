"""Tokens of code forges, package registries and build systems."""

from __future__ import annotations

from typing import Final

from holmes.redaction.kinds import token

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
)
