"""Reads environment variables for all other modules.

Also applies `--env-file` and CERTIFICATE, and selects the variables for tools. Tools receive only variables on an
allow-list, so that unknown keys do not leak. They never receive the key of a model provider or a secret of Holmes, even
if a toolset declares it.
"""

from __future__ import annotations

import os
import re
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holmes.input_files import read_input_file
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST_BYTES = 1_000_000


def process_environment() -> Mapping[str, str]:
    """Return a copy of the environment variables of this process."""
    return dict(os.environ)


def add_env_file(path: Path) -> None:
    """Set the variables from a file of `NAME=value` lines, except variables that are already set.

    Quotes, `export` and comments work as in a shell. Variables in values are not expanded. If a line is invalid, sets
    no variable and raises `ConfigError` with file and line. The error omits values, because they may be secrets.
    """
    for name, value in _read_env_file(path).items():
        os.environ.setdefault(name, value)


def _read_env_file(path: Path) -> dict[str, str]:
    from dotenv.parser import parse_stream  # this import is slow and rarely needed

    variables: dict[str, str] = {}
    with _text_of(path) as stream:
        for binding in parse_stream(stream):
            if not binding.error and binding.key is None:  # a comment, or empty lines
                continue
            leading = len(binding.original.string) - len(binding.original.string.lstrip())
            line = binding.original.line + binding.original.string[:leading].count("\n")
            name, value = binding.key or "", binding.value
            if binding.error or value is None or not _NAME.fullmatch(name) or "\0" in value:
                advice = "write one variable per line, and start comments with '#'"
                message = f"{path}:{line}: not a valid NAME=value line; {advice}"
                raise ConfigError(message)
            variables[name] = value
    return variables


def _text_of(path: Path) -> StringIO:
    """Read the content of the file. Raises `ConfigError`."""
    try:
        content = read_input_file(path, _LARGEST_BYTES)
        text = content.decode("utf-8-sig")
    except OSError as error:
        message = f"the env file '{path}' cannot be read: {error.strerror}; check the path after --env-file"
        raise ConfigError(message) from None
    except UnicodeDecodeError:
        message = f"the env file '{path}' is not UTF-8 text; save it as UTF-8"
        raise ConfigError(message) from None
    if len(content) > _LARGEST_BYTES:
        message = f"the env file '{path}' is larger than {_LARGEST_BYTES:,} bytes; check the path after --env-file"
        raise ConfigError(message)
    return StringIO(text)


def trust_own_authorities() -> None:
    """Make this process and its children trust the CA certificates in CERTIFICATE. Raises `ConfigError`."""
    if os.environ.get("CERTIFICATE"):
        os.environ.update(certificate_variables(os.environ))


_VARIABLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def certificate_variables(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment variables that make programs trust the certificates in CERTIFICATE and the public CAs.

    Writes a bundle to `~/.holmes/cache`, because OpenSSL, Go and Python all accept a file path. Raises `ConfigError`.
    """
    import hashlib

    encoded = environment.get("CERTIFICATE", "").strip()
    if not encoded:
        return {}
    own = _decoded(encoded)
    bundle = b"\n".join([own, *(path.read_bytes() for path in _known_bundles(environment))])
    folder = Path(environment.get("HOME") or Path.home()) / ".holmes" / "cache"
    path = folder / f"authorities-{hashlib.sha256(bundle).hexdigest()[:16]}.pem"
    try:
        if not path.is_file():
            _write(path, bundle)
    except OSError as error:
        message = f"CERTIFICATE cannot be used: cannot write {str(path)!r}: {error.strerror}"
        raise ConfigError(message) from error
    return dict.fromkeys(_VARIABLES, str(path))


def _decoded(encoded: str) -> bytes:
    import base64
    import ssl

    try:
        own = base64.b64decode("".join(encoded.split()), validate=True)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=own.decode("ascii"))
    except (ValueError, ssl.SSLError) as error:  # base64 and ASCII errors are ValueErrors
        message = "CERTIFICATE is not valid; expected base64-encoded PEM certificates (`base64 --wrap=0 ca.pem`)"
        raise ConfigError(message) from error
    return own


def _known_bundles(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the trusted bundles: the bundle in `SSL_CERT_FILE` or else the system's bundle, and certifi's bundle."""
    import ssl

    import certifi

    named = environment.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    paths = dict.fromkeys(Path(each) for each in (named, certifi.where()) if each)
    return tuple(path for path in paths if path.is_file())


def _write(path: Path, content: bytes) -> None:
    """Write the file atomically, because another process may read it."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    Path(temporary).replace(path)


_NAMES = frozenset(
    {
        # every program expects these variables
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "HOSTNAME",
        # kubectl, helm and the credential plugins of kubeconfig files read these variables
        "KUBECONFIG", "KUBECACHEDIR", "KUBE_CONTEXT", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME",
        "HELM_DRIVER", "HELM_NAMESPACE", "HELM_KUBECONTEXT",
        "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "USE_GKE_GCLOUD_AUTH_PLUGIN",
        "MSI_ENDPOINT", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
        # variables for network access
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    }
)  # fmt: skip

_PREFIXES = ("LC_", "XDG_", "KUBERNETES_", "AWS_", "AZURE_", "CLOUDSDK_", "AAD_")

_NEVER_PREFIXES = ("HOLMES_",)
_NEVER = frozenset(
    {
        # keys of model providers that litellm reads
        "AI21_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANYSCALE_API_KEY", "AZURE_AI_API_KEY",
        "AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "CEREBRAS_API_KEY", "COHERE_API_KEY",
        "CO_API_KEY", "DASHSCOPE_API_KEY", "DATABRICKS_API_KEY", "DATABRICKS_TOKEN", "DEEPINFRA_API_KEY",
        "DEEPSEEK_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
        "GROQ_API_KEY", "HF_TOKEN", "HUGGINGFACE_API_KEY", "LITELLM_API_KEY", "LITELLM_MASTER_KEY", "LM_STUDIO_API_KEY",
        "MINIMAX_API_KEY", "MISTRAL_API_KEY", "MOONSHOT_API_KEY", "NVIDIA_NIM_API_KEY", "OLLAMA_API_KEY",
        "OPENAI_API_KEY", "OPENROUTER_API_KEY", "PERPLEXITYAI_API_KEY", "REPLICATE_API_KEY", "TOGETHERAI_API_KEY",
        "TOGETHER_API_KEY", "VOYAGE_API_KEY", "WATSONX_APIKEY", "WATSONX_API_KEY", "XAI_API_KEY", "ZAI_API_KEY",
        # only the settings use these variables
        "CERTIFICATE", "EXTRA_HEADERS",
        # keys of telemetry collectors
        "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    }
)  # fmt: skip


def tool_environment(environment: Mapping[str, str], declared_names: Iterable[str] = ()) -> Mapping[str, str]:
    """Return the variables for tools: the base set, the variables for cluster credentials, and `declared_names`.

    `declared_names` are the variables that the user's toolsets declare. The key of a model provider is never passed on,
    even if a toolset declares it. `AWS_*` and `AZURE_*` credentials are passed on, because `aws eks get-token` and
    `kubelogin` need them.
    """
    declared = frozenset(declared_names)
    return {
        name: value
        for name, value in environment.items()
        if (name in _NAMES or name in declared or name.startswith(_PREFIXES)) and not is_withheld(name)
    }


def is_withheld(name: str) -> bool:
    """Return whether the variable `name` is always withheld from tools."""
    return name in _NEVER or name.startswith(_NEVER_PREFIXES)
