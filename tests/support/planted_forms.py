"""What a planted secret is, and the texts it is planted in. Called by the tables of planted secrets.

Made at run time from pieces, so that no scanner of repositories takes them for real ones. None was ever valid.
"""

# ruff: noqa: E501, ISC004  the texts stay as tools print them

from __future__ import annotations

import base64
import json
import random
import string
from dataclasses import dataclass
from typing import Final

SECRET_MARK: Final = "<<SECRET>>"
BASE64_MARK: Final = "<<BASE64>>"

LETTERS: Final = string.ascii_letters + string.digits
HEX: Final = "0123456789abcdef"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedSecret:
    """A secret, and the texts it is planted in. `templates` have marks in its place and in that of its base64 form."""

    kind: str
    secret: str
    templates: tuple[str, ...]

    @property
    def base64(self) -> str:
        return base64.b64encode(self.secret.encode()).decode()

    @property
    def carriers(self) -> tuple[str, ...]:
        """The texts with the secret in them."""
        return tuple(self.filled(template) for template in self.templates)

    @property
    def traces(self) -> tuple[str, ...]:
        """What must be found nowhere: the secret, its base64 form, and the longer lines of a key."""
        lines = tuple(
            line.strip() for line in self.secret.splitlines() if len(line.strip()) > 20 and "-----" not in line
        )
        return (self.secret, self.base64, json.dumps(self.secret)[1:-1], *lines)

    def filled(self, template: str) -> str:
        return template.replace(SECRET_MARK, self.secret).replace(BASE64_MARK, self.base64)


def random_text(seed: str, length: int, alphabet: str = LETTERS) -> str:
    """Random letters of which at least one is a capital, one is small and one is a digit, as far as there are such."""
    source = random.Random(seed)  # noqa: S311
    while True:
        text = "".join(source.choices(alphabet, k=length))
        wanted = [
            kind
            for kind in (string.ascii_uppercase, string.ascii_lowercase, string.digits)
            if set(kind) & set(alphabet)
        ]
        if length < 8 or all(set(kind) & set(text) for kind in wanted):
            return text


# Places that do not say that a secret comes.
_BARE: Final = (
    "2026-11-22T01:20:50Z INFO shop.worker using <<SECRET>> for upstream, attempt 2\n",
    "apiVersion: v1\ndata:\n  settings.conf: |\n    upstream <<SECRET>>\n    retries 3\nkind: ConfigMap\n",
    '{"level":"info","msg":"sent <<SECRET>> to upstream","pod":"shop-7d4b9c6f5-x2k4p"}\n',
    '{"spec": {"containers": [{"args": ["--serve", "<<SECRET>>"], "image": "shop:1.2"}]}}\n',
    "HOME=/root\nUPSTREAM=<<SECRET>>\nPATH=/usr/bin:/bin\n",
    "Containers:\n  web:\n    Environment:\n      UPSTREAM:  <<SECRET>>\n    Mounts:  <none>\n",
)


def named(name: str) -> tuple[str, ...]:
    """Places where a name says that the value is secret."""
    camel = name.lower().title().replace("_", "")
    camel = camel[0].lower() + camel[1:]
    return (
        f"spec:\n  containers:\n  - env:\n    - name: {name}\n      value: <<SECRET>>\n    - name: MODE\n      value: fast\n",
        f'{{"env": [{{"name": "{name}", "value": "<<SECRET>>"}}, {{"name": "MODE", "value": "fast"}}]}}\n',
        f'{{"env":[{{\n  "name": "{name}",\n  "value": "<<SECRET>>"\n}}]}}\n',
        f"    Environment:\n      {name}:  <<SECRET>>\n      MODE:     fast\n",
        f"HOME=/root\n{name}=<<SECRET>>\nMODE=fast\n",
        f'export {name}="<<SECRET>>"\n',
        f"2026-11-22T01:20:50Z INFO starting with {name}=<<SECRET>> mode=fast\n",
        f'{{"level":"debug","{camel}":"<<SECRET>>","mode":"fast"}}\n',
        f"shop:\n  {camel}: <<SECRET>>\n  mode: fast\n",
        f"[shop]\n{name.lower()} = <<SECRET>>\nmode = fast\n",
        f'{{"message":"env: {{\\"{name}\\":\\"<<SECRET>>\\",\\"MODE\\":\\"fast\\"}}"}}\n',
        f"command: run --{name.lower().replace('_', '-')}=<<SECRET>> --mode=fast\n",
        f"GET /api/v1/orders?{name.lower()}=<<SECRET>>&page=2 HTTP/1.1\n",
    )


SECRET_OBJECTS: Final = (
    "apiVersion: v1\ndata:\n  blob: <<BASE64>>\nkind: Secret\nmetadata:\n  name: shop-db\n  namespace: shop\ntype: Opaque\n",
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: shop-db\nstringData:\n  blob: <<SECRET>>\ntype: Opaque\n",
    "apiVersion: v1\nitems:\n- apiVersion: v1\n  data:\n    blob: <<BASE64>>\n  kind: Secret\n  metadata:\n    name: shop-db\n"
    "- apiVersion: v1\n  data:\n    mode: fast\n  kind: ConfigMap\nkind: List\n",
    '{"apiVersion":"v1","data":{"blob":"<<BASE64>>"},"kind":"Secret","metadata":{"name":"shop-db"},"type":"Opaque"}\n',
    '{\n    "apiVersion": "v1",\n    "data": {\n        "blob": "<<BASE64>>"\n    },\n    "kind": "Secret",\n'
    '    "metadata": {\n        "name": "shop-db"\n    }\n}\n',
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":'
    '"{\\"apiVersion\\":\\"v1\\",\\"data\\":{\\"blob\\":\\"<<BASE64>>\\"},\\"kind\\":\\"Secret\\",'
    '\\"metadata\\":{\\"name\\":\\"shop-db\\"}}\\n"}}}\n',
    "metadata:\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: |\n"
    '      {"apiVersion":"v1","kind":"Secret","metadata":{"name":"shop-db"},"stringData":{"blob":"<<SECRET>>"}}\n  name: shop\n',
)


def bare(kind: str, secret: str) -> PlantedSecret:
    """A secret that is known by its shape: in places that do not say that one comes, and in Secrets."""
    return PlantedSecret(kind=kind, secret=secret, templates=(*_BARE, *SECRET_OBJECTS))


def planted_at(kind: str, secret: str, *templates: str) -> PlantedSecret:
    """A secret that is known by its place: one of `templates`."""
    return PlantedSecret(kind=kind, secret=secret, templates=templates)


def jwt() -> str:
    """The token of a service account."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:shop:web"}
    return ".".join((part({"alg": "RS256", "kid": "x"}), part(claims), random_text("jwt", 86)))


def key_body(seed: str, lines: int) -> str:
    """The lines between BEGIN and END of a key."""
    return (
        "\n".join("MII" + random_text(f"{seed}{line}", 61) for line in range(lines))
        + "\n"
        + random_text(seed, 22)
        + "=="
    )


def pem(name: str) -> PlantedSecret:
    """A private key in PEM form."""
    body = key_body(name, 4)
    begin, end = (f"-----{word} {name}-----" for word in ("BEGIN", "END"))
    escaped = body.replace("\n", "\\n")
    indented = body.replace("\n", "\n    ")
    return PlantedSecret(
        kind=f"pem {name}",
        secret=body,
        templates=(
            f"loaded key\n{begin}\n<<SECRET>>\n{end}\nready\n",
            f"data:\n  tls.key: |\n    {begin}\n    {indented}\n    {end}\nkind: ConfigMap\n",
            f'{{"private": "{begin}\\n{escaped}\\n{end}\\n", "mode": "fast"}}\n',
            f"cut off\n{begin}\n<<SECRET>>\n",
        ),
    )
