"""Which variables of the process tools may see.

An allow-list, so that a key that is invented tomorrow does not leak today. Never passes a key of a model provider or a
secret of Holmes itself, not even when a toolset declares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAMES = frozenset(
    {
        # what any program expects
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "HOSTNAME",
        # kubectl, helm and the credential plugins of kubeconfig files
        "KUBECONFIG", "KUBECACHEDIR", "KUBE_CONTEXT", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME",
        "HELM_DRIVER", "HELM_NAMESPACE", "HELM_KUBECONTEXT",
        "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "USE_GKE_GCLOUD_AUTH_PLUGIN",
        "MSI_ENDPOINT", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
        # the way to the network
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    }
)  # fmt: skip

_PREFIXES = ("LC_", "XDG_", "KUBERNETES_", "AWS_", "AZURE_", "CLOUDSDK_", "AAD_")

_NEVER_PREFIXES = ("HOLMES_",)
_NEVER = frozenset(
    {
        # the keys of model providers that litellm reads
        "AI21_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANYSCALE_API_KEY", "AZURE_AI_API_KEY",
        "AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "CEREBRAS_API_KEY", "COHERE_API_KEY",
        "CO_API_KEY", "DASHSCOPE_API_KEY", "DATABRICKS_API_KEY", "DATABRICKS_TOKEN", "DEEPINFRA_API_KEY",
        "DEEPSEEK_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
        "GROQ_API_KEY", "HF_TOKEN", "HUGGINGFACE_API_KEY", "LITELLM_API_KEY", "LITELLM_MASTER_KEY", "LM_STUDIO_API_KEY",
        "MINIMAX_API_KEY", "MISTRAL_API_KEY", "MOONSHOT_API_KEY", "NVIDIA_NIM_API_KEY", "OLLAMA_API_KEY",
        "OPENAI_API_KEY", "OPENROUTER_API_KEY", "PERPLEXITYAI_API_KEY", "REPLICATE_API_KEY", "TOGETHERAI_API_KEY",
        "TOGETHER_API_KEY", "VOYAGE_API_KEY", "WATSONX_APIKEY", "WATSONX_API_KEY", "XAI_API_KEY", "ZAI_API_KEY",
        # what settings read and tools have no use for
        "CERTIFICATE", "EXTRA_HEADERS",
        # the keys of telemetry collectors
        "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    }
)  # fmt: skip


def tool_environment(environment: Mapping[str, str], declared_names: Iterable[str] = ()) -> Mapping[str, str]:
    """The variables that tools may see: the base set, what cluster credentials need, and `declared_names`.

    `declared_names` are the variables that the user's toolsets ask for. A declared model key is left out: a
    toolset file must not be a way to read it. `AWS_*` and `AZURE_*` credentials stay, because `aws eks get-token` and
    `kubelogin` sign with them.
    """
    declared = frozenset(declared_names)
    return {
        name: value
        for name, value in environment.items()
        if (name in _NAMES or name in declared or name.startswith(_PREFIXES)) and not is_withheld(name)
    }


def is_withheld(name: str) -> bool:
    """Whether tools never see `name`, whoever asks."""
    return name in _NEVER or name.startswith(_NEVER_PREFIXES)
