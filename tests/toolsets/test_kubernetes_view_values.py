"""What sounds secret in Helm values is hidden, under every usual name and inside of texts; the rest is shown."""

from __future__ import annotations

import json

import pytest

from holmes.toolsets.kubernetes_view import Json
from holmes.toolsets.kubernetes_view.helm import masked_values
from holmes.toolsets.kubernetes_view.secret_names import sounds_secret, words_of

_PLANTED = "hunter2"

_SECRET_NAMES = """
password userPassword usernamePassword mountPassword userpassword keystorePassword password1 passphrase passwd
pwd pass adminPass smtp_pass redisPass rootPw DB_PASS MYSQL_PWD GRAFANA_PASSWORD DATABASE_URL_PASSWORD
token usersToken useToken tokens secret secrets clientSecret client_secret jwtSecret AUTH_SECRET cookieSecret
apiKey APIKey API_KEY api-key apikey encryptionKey signingKey master_key masterKey2 sshKey tls.key hmacKey privateKey
secretKey s3SecretKey awsSecretAccessKey aws-secret-access-key sessionKey jwt bearer cookie authorization basicAuth
auth dockerconfigjson .dockerconfigjson connectionString webhookUrl slackWebhookURL slack_api_url dsn SENTRY_DSN salt
caCert license existingPassword spring.datasource.password --db-password creds
""".split()  # noqa: SIM905  a table of words
_PLAIN_NAMES = """
secretName existingSecret existingSecretPasswordKey tokenAudience passwordSecretRef passwordRef tokenPath tokenFile
secretKeyRef imagePullSecretNames secretStore secretStoreRef secretsPath tokenTTL tokenExpirationSeconds maxTokens
max_tokens passwordPolicy useTLS mountPath keyspace monkey passThrough passes passive compass bypass keyName keyPrefix
key keys primaryKey partitionKey topologyKey sortKey labelKey hotkey turkey keyboard publicKeyPath author authority
authProvider authType authMode authEnabled authUrl certManager certificateName certDir tlsCertFile cookieName
cookieDomain licenseType accessMode tokenizer secretary pinned pinVersion spinner ping username user image tag tls
replicas serviceAccountName apiVersion owners
""".split()  # noqa: SIM905  a table of words


@pytest.mark.parametrize("name", _SECRET_NAMES)
def test_a_name_that_sounds_secret_hides_its_value(name: str) -> None:
    assert sounds_secret(name)
    assert masked_values({name: _PLANTED}) == {name: "(hidden)"}
    assert masked_values({"env": [{"name": name, "value": _PLANTED}]}) == {"env": [{"name": name, "value": "(hidden)"}]}


@pytest.mark.parametrize("name", _PLAIN_NAMES)
def test_a_name_that_only_resembles_a_secret_hides_nothing(name: str) -> None:
    assert not sounds_secret(name)
    assert masked_values({name: "shown"}) == {name: "shown"}


def test_words_are_found_however_they_are_joined() -> None:
    assert words_of("tls.keyID") == ("tls", "key", "id")
    assert words_of("AWSSecretKey2") == words_of("aws_secret-KEY.2") == ("aws", "secret", "key", "2")


@pytest.mark.parametrize(
    "text",
    [
        f"--password={_PLANTED}",
        f"--db-password {_PLANTED} --mode fast",
        f"mysql -u root --password {_PLANTED} -h x",
        f"-Dpassword={_PLANTED} -Xmx1g",
        f"DB_PASS={_PLANTED} MODE=fast run",
        f"export TOKEN='{_PLANTED}'; go",
        f"password:{_PLANTED}",
        f"password = {_PLANTED} and {_PLANTED}",
        f"mode: fast\npassword: {_PLANTED}\nother: 2",
        f"%: }}\npassword: |\n  first\n\n  {_PLANTED}\nother: 2",
        f"x=1\nspring.datasource.password={_PLANTED}\ny",
        f"[db]\npass={_PLANTED}\nhost=x",
        f"requirepass {_PLANTED}\nport 1",
        f"if x {{\n  password => {_PLANTED}\n}}",
        f'proxy_set_header Authorization "Bearer {_PLANTED}";',
        f"curl -H 'x: Basic {_PLANTED}=='",
        f"<user>u</user><password>{_PLANTED}</password>",
        f'{{"a": {{"password": "{_PLANTED}"}}}}',
        f'{{"a": {{"password": "{_PLANTED}"}}}} trailing',
        f'\\"password\\":\\"{_PLANTED}\\",\\"x\\":\\"y\\"',
        json.dumps({"a": json.dumps({"token": _PLANTED})}),
        f"postgres://user:{_PLANTED}@db/x",
        f"postgres://user:pa/{_PLANTED}@db/x",
        f"redis://:{_PLANTED}@db:1,redis://:{_PLANTED}@db:2",
        f"https://{_PLANTED * 4}@git.example.org/x",
        f"http://x/?token={_PLANTED}&mode=fast",
        f"-----BEGIN RSA PRIVATE KEY-----\n{_PLANTED}\n-----END RSA PRIVATE KEY-----\n",
    ],
)
def test_a_secret_inside_of_a_text_is_hidden(text: str) -> None:
    shown = json.dumps(masked_values({"config": text, "args": [text]}))
    assert _PLANTED not in shown
    assert shown.count("(hidden)") >= 2


def test_what_stands_beside_a_secret_is_shown() -> None:
    assert masked_values("mode: fast\npassword: x\nother: 2\n") == "mode: fast\npassword: (hidden)\nother: 2\n"
    assert masked_values("a --password=x --mode=fast") == "a --password=(hidden) --mode=fast"
    assert masked_values("http://x/?token=y&mode=fast") == "http://x/?token=(hidden)&mode=fast"
    assert masked_values(["run", "--password", "x", "--mode", "fast"]) == [
        "run",
        "--password",
        "(hidden)",
        "--mode",
        "fast",
    ]


@pytest.mark.parametrize(
    "value",
    [
        "registry.example.org:443/a@sha256:abc",
        "oci://registry.example.com:443/a@sha256:abc",
        "http://host:8080/path",
        "ssh://git@github.com/x",
        "useTLS=true secretName=x",
        "image: a # comment\nreplicas: 3\n",
        "Basic authentication is off",
        "see the docs of the token: ",
        {"auth": {"database": "x"}, "token": True, "password": "", "secrets": {}, "authorization": {"mode": "RBAC"}},
        {"valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
        ["--token-ttl", "5m", "--secret-name=x"],
    ],
)
def test_a_value_without_a_secret_stays_as_it_is(value: Json) -> None:
    assert masked_values(value) == value


def test_everything_below_a_secret_is_hidden_but_switches() -> None:
    values: Json = {"basicAuth": {"user": "u", "hash": "h"}, "secrets": {"enabled": True, "a": [1, {"b": "x"}]}}
    assert masked_values(values) == {
        "basicAuth": {"user": "(hidden)", "hash": "(hidden)"},
        "secrets": {"enabled": True, "a": ["(hidden)", {"b": "(hidden)"}]},
    }


@pytest.mark.parametrize(
    "piece", ["A", "a=b ", "a://", "password=x ", "<a", "-----BEGIN PRIVATE KEY", "{", "- ", "a: ", "x --", "http://a:"]
)
def test_a_long_text_of_one_piece_is_masked_to_a_text(piece: str) -> None:
    assert isinstance(masked_values(piece * (20_000 // len(piece))), str)
