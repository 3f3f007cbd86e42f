"""Secrets of every kind that redaction knows, planted in texts as tools return them. Called by many tests."""

# ruff: noqa: E501, ISC003  the texts stay as tools print them

from __future__ import annotations

import string

from tests.support.planted_forms import (
    BASE64_MARK,
    HEX,
    LETTERS,
    SECRET_MARK,
    PlantedSecret,
    bare,
    jwt,
    key_body,
    named,
    pem,
    planted_at,
    random_text,
)
from tests.support.planted_places import secrets_of_places

__all__ = ["BASE64_MARK", "SECRET_MARK", "PlantedSecret", "planted_secrets"]


def _of_clouds() -> tuple[PlantedSecret, ...]:
    key_id = "AK" + "IA" + random_text("aws", 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    key = random_text("aws key", 40, LETTERS + "/+")
    return (
        bare("aws key id", key_id),
        planted_at("aws secret key", key, *named("AWS_SECRET_ACCESS_KEY")),
        bare("aws session token", "IQoJb3JpZ2lu" + random_text("aws session", 300, LETTERS + "/+") + "=="),
        bare("google api key", "AI" + "za" + random_text("google", 35)),
        bare("google oauth token", "ya" + "29." + random_text("google oauth", 120)),
        bare("google client secret", "GOC" + "SPX-" + random_text("google client", 28)),
        planted_at(
            "google key id",
            random_text("gcp", 40, HEX),
            '{"private_key_id": "<<SECRET>>", "type": "x"}\n',
            "private_key_id: <<SECRET>>\n",
        ),
        planted_at(
            "google service account",
            '{"type":"service_account","project_id":"shop-123456","client_id":"1"}' + " " * 10,
            "creds <<BASE64>> loaded\n",
            '{"file":"<<BASE64>>","mode":"fast"}\n',
        ),
        bare("azure client secret", "aB3" + "8Q" + "~" + random_text("azure", 34)),
        planted_at(
            "azure storage key",
            random_text("storage", 86, LETTERS + "/+") + "==",
            "cs: DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=<<SECRET>>;EndpointSuffix=core.windows.net\n",
            '{"cs":"AccountName=shop;AccountKey=<<SECRET>>;EndpointSuffix=core.windows.net"}\n',
            "AZURE_CS=Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=<<SECRET>>\n",
        ),
        planted_at(
            "azure shared access signature",
            random_text("sas", 43) + "%3D",
            "GET https://shop.blob.core.windows.net/x?sv=2022-11-02&sr=b&sig=<<SECRET>>&se=2026-12-01 200\n",
            '{"url":"https://shop.blob.core.windows.net/x?sv=2022-11-02&sig=<<SECRET>>"}\n',
        ),
        bare("digitalocean token", "do" + "p_v1_" + random_text("do", 64, HEX)),
    )


def _of_forges_and_services() -> tuple[PlantedSecret, ...]:
    numbers = string.digits
    capitals = string.ascii_uppercase + string.digits
    return (
        bare("github token", "gh" + "p_" + random_text("ghp", 36)),
        bare("github oauth token", "gh" + "o_" + random_text("gho", 36)),
        bare("github app token", "gh" + "s_" + random_text("ghs", 36)),
        bare("github fine-grained token", "github" + "_pat_" + random_text("pat", 22) + "_" + random_text("pat2", 59)),
        bare("gitlab token", "gl" + "pat-" + random_text("gitlab", 20)),
        bare("npm token", "np" + "m_" + random_text("npm", 36)),
        bare("pypi token", "py" + "pi-" + "AgEIcHlwaS5vcmc" + random_text("pypi", 120)),
        bare("docker hub token", "dckr" + "_pat_" + random_text("docker", 27)),
        bare(
            "slack bot token",
            "xo"
            + "xb-"
            + random_text("slack", 12, numbers)
            + "-"
            + random_text("s2", 13, numbers)
            + "-"
            + random_text("s3", 24),
        ),
        planted_at(
            "slack webhook",
            "T"
            + random_text("wh", 9, capitals)
            + "/B"
            + random_text("wh2", 9, capitals)
            + "/"
            + random_text("wh3", 24),
            "slack_url: https://hooks.slack.com/services/<<SECRET>>\n",
            'POST "https://hooks.slack.com/services/<<SECRET>>": 404\n',
        ),
        planted_at(
            "discord webhook",
            random_text("discord", 68),
            "posting to https://discord.com/api/webhooks/123456789012345678/<<SECRET>> failed\n",
            '{"url":"https://discordapp.com/api/webhooks/123456789012345678/<<SECRET>>"}\n',
        ),
        bare(
            "discord bot token",
            "M" + random_text("db", 23) + "." + random_text("db2", 6) + "." + random_text("db3", 27),
        ),
        bare("telegram bot token", random_text("tg", 10, numbers) + ":AA" + random_text("tg2", 33)),
        bare("stripe key", "sk" + "_live_" + random_text("stripe", 24)),
        bare("stripe webhook secret", "wh" + "sec_" + random_text("stripe wh", 32)),
        bare("twilio key", "S" + "K" + random_text("twilio", 32, HEX)),
        planted_at("twilio auth token", random_text("twilio token", 32, HEX), *named("TWILIO_AUTH_TOKEN")),
        bare("sendgrid key", "S" + "G." + random_text("sg", 22) + "." + random_text("sg2", 43)),
        bare("mailgun key", "ke" + "y-" + random_text("mailgun", 32, HEX)),
        bare("shopify token", "shp" + "at_" + random_text("shopify", 32, HEX)),
        bare("anthropic key", "sk-" + "ant-api03-" + random_text("anthropic", 93)),
        bare("openai key", "sk-" + "proj-" + random_text("openai", 64)),
        bare("openai legacy key", "sk-" + random_text("openai2", 48)),
        bare("hugging face token", "h" + "f_" + random_text("hf", 34)),
        bare("vault token", "hv" + "s." + random_text("vault", 90)),
        bare("vault legacy token", "s." + random_text("vault legacy", 24)),
        planted_at(
            "consul token", "5f0c2a7e-9d1b-4c3e-8a6f-" + random_text("consul", 12, HEX), *named("CONSUL_HTTP_TOKEN")
        ),
        planted_at("nomad token", "7b1c2a7e-1d1b-4c3e-9a6f-" + random_text("nomad", 12, HEX), *named("NOMAD_TOKEN")),
        planted_at("datadog key", random_text("datadog", 32, HEX), *named("DD_API_KEY")),
        planted_at("datadog app key", random_text("datadog app", 40, HEX), *named("DATADOG_APP_KEY")),
        bare("new relic key", "NR" + "AK-" + random_text("nr", 27, capitals)),
        planted_at("new relic license key", random_text("nrl", 40, HEX), *named("NEW_RELIC_LICENSE_KEY")),
        bare("grafana token", "gl" + "sa_" + random_text("grafana", 32) + "_" + random_text("g", 8, HEX)),
        planted_at(
            "sentry dsn",
            random_text("sentry", 32, HEX),
            "SENTRY_DSN=https://<<SECRET>>@o123.ingest.sentry.io/456\n",
            '{"dsn":"https://<<SECRET>>@o123.ingest.sentry.io/456"}\n',
        ),
    )


def _of_keys() -> tuple[PlantedSecret, ...]:
    pem_names = ("RSA", "EC", "OPENSSH", "ENCRYPTED")
    crypt = LETTERS + "./"
    block = "PRIVATE KEY BLOCK"
    pem_text = f"-----BEGIN {'RSA'} PRIVATE KEY-----\n{key_body('b64', 4)}\n-----END RSA PRIVATE KEY-----\n"
    return (
        bare("service account token", jwt()),
        *(pem(f"{name} PRIVATE KEY") for name in pem_names),
        pem("PRIVATE KEY"),
        pem(f"PGP {block}"),
        planted_at(
            "base64 of a private key",
            pem_text,
            "user:\n  blob: <<BASE64>>\n",
            '{"blob":"<<BASE64>>"}\n',
            "got <<BASE64>> from vault\n",
        ),
        bare("age key", "AGE-" + "SECRET-KEY-1" + random_text("age", 58, string.ascii_uppercase + string.digits)),
        bare("bcrypt hash", "$2" + "b$12$" + random_text("bcrypt", 53, crypt)),
        bare("crypt hash", "$6" + "$" + random_text("salt", 16) + "$" + random_text("crypt", 86, crypt)),
        bare("apr1 hash", "$apr1" + "$" + random_text("salt", 8) + "$" + random_text("apr1", 22, crypt)),
        bare("argon2 hash", "$argon2id" + "$v=19$m=65536,t=3,p=4$" + random_text("a", 22) + "$" + random_text("b", 43)),
        planted_at(
            "wireguard key",
            random_text("wg", 43) + "=",
            "[Interface]\nPrivateKey = <<SECRET>>\nAddress = 10.0.0.1/24\n",
            '{"conf":"[Interface]\\nPrivateKey = <<SECRET>>\\nAddress = 10.0.0.1/24\\n"}\n',
        ),
        planted_at(
            "bootstrap token",
            random_text("boot", 6, HEX) + "." + random_text("boot2", 16, HEX),
            "kubeadm join 10.0.0.1:6443 --token <<SECRET>> --discovery-token-ca-cert-hash sha256:" + "ab" * 32 + "\n",
            "bootstrapTokens:\n- token: <<SECRET>>\n  ttl: 24h0m0s\n",
            "[bootstrap-token] Using token: <<SECRET>>\n",
        ),
        planted_at(
            "registry login",
            "robot:" + random_text("registry", 16),
            '{"auths":{"registry.example.com":{"auth":"<<BASE64>>"}}}\n',
            '{\n  "auths": {\n    "registry.example.com": {\n      "auth": "<<BASE64>>"\n    }\n  }\n}\n',
            '{"s":"{\\"auths\\":{\\"registry.example.com\\":{\\"auth\\":\\"<<BASE64>>\\"}}}"}\n',
        ),
        planted_at(
            "registry config",
            '{"auths":{"registry.example.com":{"username":"bob","password":"' + random_text("cfg", 12) + '"}}}',
            "data:\n  .dockerconfigjson: <<BASE64>>\nkind: Secret\n",
            "found <<BASE64>> in annotation\n",
        ),
        planted_at(
            "kubeconfig client key",
            pem_text,
            "users:\n- name: admin\n  user:\n    client-key-data: <<BASE64>>\n    username: admin\n",
            '{"user":{"client-key-data":"<<BASE64>>"}}\n',
        ),
        planted_at(
            "kubeconfig token",
            random_text("kubeconfig", 32),
            "users:\n- name: admin\n  user:\n    token: <<SECRET>>\ncurrent-context: a\n",
            '{"users":[{"name":"admin","user":{"token":"<<SECRET>>"}}]}\n',
        ),
    )


def planted_secrets() -> tuple[PlantedSecret, ...]:
    """Every kind, each planted in at least two texts."""
    return (*_of_clouds(), *_of_forges_and_services(), *_of_keys(), *secrets_of_places())
