"""Hosts in texts and settings: names that count as Services of the cluster, and names that never do."""

from __future__ import annotations

import pytest

from holmes.diagnosis.facts.edges import host_uses, workload_hosts
from holmes.kubernetes.cluster_state import ClusterState
from tests.diagnosis.row_cases import state_of

SHOP = state_of(
    {
        "objects": [
            {"kind": "Namespace", "metadata": {"name": "shop"}},
            {"kind": "Namespace", "metadata": {"name": "data"}},
            {
                "kind": "Service",
                "metadata": {"name": "cart"},
                "spec": {
                    "clusterIP": "10.96.3.4",
                    "selector": {"app": "cart"},
                    "ports": [{"port": 8080, "targetPort": "http"}],
                },
            },
            {
                "kind": "Service",
                "metadata": {"name": "db", "namespace": "data"},
                "spec": {"clusterIP": "None", "selector": {"app": "db"}, "ports": [{"port": 5432}]},
            },
            {
                "kind": "Pod",
                "metadata": {"name": "cart-1", "labels": {"app": "cart"}},
                "spec": {"containers": [{"name": "cart", "ports": [{"name": "http", "containerPort": 8081}]}]},
                "status": {"phase": "Running", "podIP": "10.244.0.9"},
            },
        ]
    }
)


def services(text: str, state: ClusterState = SHOP) -> list[tuple[str, int | None]]:
    return [(use.service.path, use.port) for use in host_uses(text, "shop", state)]


@pytest.mark.parametrize(
    ("text", "service", "port"),
    [
        ("dial tcp: lookup crat on 10.96.0.10:53: no such host", "shop/crat", None),
        ("wget: bad address 'crat:8080'", "shop/crat", 8080),
        ("wget: can't connect to remote host (10.96.3.4): Connection refused", "shop/cart", None),
        ("dial tcp 10.244.0.9:8081: connect: connection refused", "shop/cart", 8081),
        ("read udp 10.244.0.9:40123->10.96.3.4:8080: i/o timeout", "shop/cart", 8080),
        ("dial tcp: crat:8080: connection refused", "shop/crat", 8080),
        ("Error: getaddrinfo ENOTFOUND crat", "shop/crat", None),
        ("java.net.UnknownHostException: crat", "shop/crat", None),
        ("HTTPConnectionPool(host='crat', port=8080): Max retries exceeded", "shop/crat", 8080),
        ('could not translate host name "postgres" to address', "shop/postgres", None),
        ('connection to server at "postgres" (10.1.1.2), port 5432 failed', "shop/postgres", 5432),
        ('host not found in upstream "crat" in /etc/nginx/conf.d/default.conf:12', "shop/crat", None),
        ("curl: (6) Could not resolve host: crat", "shop/crat", None),
        ("Failed to connect to cart port 8080 after 3 ms", "shop/cart", 8080),
        ("CART_URL=http://crat:8080/api", "shop/crat", 8080),
        ("ERROR http://crat:8080: connection refused", "shop/crat", 8080),
        ("ERROR http://cart.shpo:8080: connection refused", "shpo/cart", 8080),
        ("CART_HOST=crat", "shop/crat", None),
        ("--cart-host=crat", "shop/crat", None),
        ("DATABASE_URL=jdbc:postgresql://db.data:5432/orders", "data/db", 5432),
        ("DB_HOST=db-0.db.data.svc.cluster.local", "data/db", None),
        ("http://cart.shpo.svc.cluster.local:8080/", "shpo/cart", 8080),
        ("http://cart.shpo:8080/", "shpo/cart", 8080),
        ("amqp://user:1234@rabbit:5672/", "shop/rabbit", 5672),
        ("KAFKA_BROKERS=kafka:9092", "shop/kafka", 9092),
        ("until nslookup mydb; do echo waiting for mydb; sleep 2; done", "shop/mydb", None),
        ("nc -zv -w 2 mydb 5432", "shop/mydb", 5432),
        ("until nc -z database 5432; do sleep 1; done", "shop/database", 5432),
        ("http://database:8080/items", "shop/database", 8080),
        ("could not connect to database:5432", "shop/database", 5432),
        ("waiting for orders-db:5432", "shop/orders-db", 5432),
        ("  proxy_pass http://cart:8080;", "shop/cart", 8080),
        ("  server cart:8080 max_fails=3;", "shop/cart", 8080),
    ],
)
def test_a_host_in_host_position_is_the_service_it_names(text: str, service: str, port: int | None) -> None:
    assert services(text) == [(service, port)]


@pytest.mark.parametrize(
    "text",
    [
        "pulling image registry.shop.example/cart:1.2.3",
        "IMAGE=redis:7000",
        "redis:7 is too old",
        "connecting to the database failed after 3 attempts",
        "connecting to database failed: server 500",
        "nc -ll -p 8080 -e sleep 100",
        "nc -l 8080; nc -lk -p 80 database 8080",
        "waiting for payments to come up",
        "GET https://example.com/cart http://s3.eu-west-1.amazonaws.com/x http://localhost:8080",
        "https://api.shop/v1",
        "https://crat.example: i/o timeout",
        "mqtts://crat.corp:8883: remote error: tls: expired certificate",
        "http://crat.{{ .Values.domain }}/",
        "WARN amqp connection blocked by broker: low on memory",
        "main.go:123 at handler:456 something failed",
        "(node:12345) DeprecationWarning: socket",
        "s3://orders/2026 file:///etc/hosts docker-pullable://cart:8080",
        '10.244.0.9 - - "GET / HTTP/1.1" 200',
        "allow 10.96.3.0/24; version 1.10.96.3.4",
        "level=error:500 msg=cart status:404",
        "LISTEN_ADDR=0.0.0.0:8080 ADDRESS=:8080 HOST=localhost",
        "URL=$(CART_URL) and http://$HOST:8080/",
    ],
)
def test_words_images_external_domains_and_own_addresses_name_no_service(text: str) -> None:
    assert services(text) == []


def test_a_word_with_a_number_counts_when_it_is_an_existing_service() -> None:
    assert services("cart:8080 answered") == [("shop/cart", 8080)]
    assert services("cast:8080 answered") == []


def test_settings_of_a_workload_are_found_where_they_stand() -> None:
    state = state_of(
        {
            "objects": [
                {"kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"CART_URL": "http://crat:8080"}},
                {"kind": "ConfigMap", "metadata": {"name": "nginx"}, "data": {"default.conf": "a;\nserver cart:80;\n"}},
                {
                    "kind": "Deployment",
                    "metadata": {"name": "web"},
                    "spec": {
                        "template": {
                            "spec": {
                                "initContainers": [{"name": "wait", "command": ["sh", "-c", "nslookup $DB_HOST"]}],
                                "containers": [
                                    {
                                        "name": "web",
                                        "args": ["--search-url", "http://search:9200", "--db", "${DB_HOST}:5432"],
                                        "envFrom": [{"configMapRef": {"name": "web"}}],
                                        "env": [
                                            {"name": "DB_HOST", "value": "postgres"},
                                            {"name": "DB_PORT", "value": "5432"},
                                            {"name": "API", "value": "http://$(DB_HOST):80/"},
                                        ],
                                        "volumeMounts": [{"name": "conf", "mountPath": "/etc/nginx"}],
                                    }
                                ],
                                "volumes": [{"name": "conf", "configMap": {"name": "nginx"}}],
                            }
                        }
                    },
                },
            ]
        }
    )
    (web,) = state.of("Deployment")
    found = {
        (use.service.name, use.port): (str(evidence.object), evidence.path)
        for use, evidence in workload_hosts(state, web)
    }
    container = "spec.template.spec.containers[0]"
    assert found == {
        ("crat", 8080): ("ConfigMap shop/web", "data.CART_URL"),
        ("search", 9200): ("Deployment shop/web", f"{container}.args[1]"),
        ("postgres", 5432): ("Deployment shop/web", f"{container}.env[0].value"),
        ("postgres", 80): ("Deployment shop/web", f"{container}.env[2].value"),
        ("cart", 80): ("ConfigMap shop/nginx", "data.default.conf"),
    }


@pytest.mark.parametrize("text", ["a-" * 50_000, "a." * 50_000, "a=" * 50_000, "http://" * 20_000, "1." * 50_000])
def test_a_long_text_without_a_host_names_no_service(text: str) -> None:
    assert not services(text)
