"""Secrets that their name or their place gives away. Called by the list of planted secrets."""

from __future__ import annotations

import base64

from tests.support.planted_forms import SECRET_OBJECTS, PlantedSecret, named, planted_at, random_text


def secrets_of_places() -> tuple[PlantedSecret, ...]:
    """Passwords, headers, options of commands, lines of files."""
    password = "hunter" + "2-" + random_text("password", 8)
    basic = base64.b64encode(f"bob:{password}".encode()).decode()
    cookie = random_text("cookie", 32)
    bearer = random_text("bearer", 40)
    return (
        planted_at("password", password, *named("DB_PASSWORD"), *SECRET_OBJECTS),
        planted_at("short password", "pa" + "55w0", *named("REDIS_PASSWORD")),
        planted_at("token", random_text("token", 24), *named("X_TOKEN"), *SECRET_OBJECTS),
        planted_at("client secret", random_text("client", 30), *named("OAUTH_CLIENT_SECRET")),
        planted_at("api key", random_text("api", 32), *named("SHOP_API_KEY")),
        planted_at("signing key", random_text("signing", 32), *named("JWT_SIGNING_KEY")),
        planted_at("django key", "django-insecure-" + random_text("django", 40), *named("SECRET_KEY")),
        planted_at(
            "url password",
            random_text("url", 14),
            "DATABASE_URL=postgres://shop:<<SECRET>>@db.shop.svc:5432/shop?sslmode=disable\n",
            "dial redis://:<<SECRET>>@redis:6379/0: connection refused\n",
            '{"url":"amqp://shop:<<SECRET>>@mq:5672/vhost"}\n',
            "  uri: mongodb+srv://shop:<<SECRET>>@cluster0.mongodb.net/shop\n",
            "fatal: could not read from https://bob:<<SECRET>>@git.example.com/shop.git\n",
            "dsn shop:<<SECRET>>@tcp(db:3306)/shop?parseTime=true\n",
        ),
        planted_at(
            "driver password",
            random_text("driver", 14),
            "jdbc:postgresql://db:5432/shop?user=shop&password=<<SECRET>>&ssl=true\n",
            "Server=db;Database=shop;User Id=sa;Password=<<SECRET>>;Encrypt=True\n",
            "host=db port=5432 user=shop password=<<SECRET>> dbname=shop\n",
            '{"cs":"jdbc:sqlserver://db:1433;user=sa;password=<<SECRET>>;encrypt=true"}\n',
            "jdbc:oracle:thin:shop/<<SECRET>>@db:1521:XE\n",
        ),
        planted_at(
            "bearer header",
            bearer,
            "> Authorization: Bearer <<SECRET>>\n> Accept: */*\n",
            '{"headers":{"Authorization":"Bearer <<SECRET>>","Accept":"*/*"}}\n',
            "curl -H 'Authorization: Bearer <<SECRET>>' https://api.example.com\n",
            "Authorization:[Bearer <<SECRET>>] Accept:[*/*]\n",
            '{"headers":{"Authorization":["Bearer <<SECRET>>"]}}\n',
        ),
        planted_at(
            "basic header",
            basic,
            "Authorization: Basic <<SECRET>>\n",
            "Proxy-Authorization: Basic <<SECRET>>\n",
            '{"authorization":"Basic <<SECRET>>"}\n',
        ),
        planted_at(
            "key header",
            random_text("key header", 32),
            "X-Api-Key: <<SECRET>>\nAccept: */*\n",
            "curl -H 'X-Auth-Token: <<SECRET>>' http://x\n",
        ),
        planted_at(
            "cookie",
            cookie,
            "Cookie: session=<<SECRET>>\n",
            "Set-Cookie: sid=<<SECRET>>\r\nAccept: */*\n",
            '{"cookie":"sid=<<SECRET>>","path":"/"}\n',
        ),
        planted_at(
            "query parameter",
            random_text("query", 32),
            "GET /cb?access_token=<<SECRET>>&state=x HTTP/1.1\n",
            "GET https://api.example.com/v1?key=<<SECRET>> 403\n",
            '{"path":"/cb?state=x\\u0026api_key=<<SECRET>>"}\n',
        ),
        planted_at(
            "command line",
            "Pr0d" + random_text("flag", 10),
            "mysqldump -h db -u root -p<<SECRET>> shop\n",
            "curl -sS -u bob:<<SECRET>> https://api.example.com\n",
            "app --password <<SECRET>> --mode fast\n",
            'args: ["--token", "<<SECRET>>", "--mode", "fast"]\n',
            "    args:\n    - --password\n    - <<SECRET>>\n    - --mode=fast\n",
            "sshpass -p <<SECRET>> ssh root@node-1\n",
            "redis-cli -h redis -a <<SECRET>> ping\n",
            "docker login -u bob -p <<SECRET>> registry.example.com\n",
            "ldapsearch -D cn=admin -w <<SECRET>> -b dc=example\n",
            "helm upgrade shop ./shop --set auth.password=<<SECRET>>,mode=fast\n",
            "PGPASSWORD=<<SECRET>> psql -h db -U shop\n",
        ),
        planted_at(
            "client file",
            "Cl1" + random_text("file", 12),
            "machine api.example.com login bob password <<SECRET>>\n",
            "machine api.example.com\n  login bob\n  password <<SECRET>>\n",
            "db.shop.svc:5432:shop:bob:<<SECRET>>\n",
            "requirepass <<SECRET>>\nport 6379\n",
            "bindpw: <<SECRET>>\n",
            "rocommunity <<SECRET>> 10.0.0.0/8\n",
            'network={\n  ssid="x"\n  psk="<<SECRET>>"\n}\n',
            "//registry.example.com/:_authToken=<<SECRET>>\n",
            "<server>\n  <password><<SECRET>></password>\n</server>\n",
            "spring.datasource.password=<<SECRET>>\nspring.datasource.url=jdbc:h2:mem\n",
            'secret_key = "<<SECRET>>"\nregion = "eu-1"\n',
        ),
        planted_at(
            "helm value",
            "He1m" + random_text("helm", 10),
            "postgresql:\n  auth:\n    postgresPassword: <<SECRET>>\n    database: shop\n",
            "grafana:\n  adminPassword: '<<SECRET>>'\n  replicas: 1\n",
            'USER-SUPPLIED VALUES:\nauth:\n  rootPassword: "<<SECRET>>"\n',
        ),
        planted_at(
            "configmap description",
            "C0nf" + random_text("cm", 10),
            "Name:  shop\nData\n====\ndb_password:\n----\n<<SECRET>>\n\nmode:\n----\nfast\n",
            "Data\n====\ndb.properties:\n----\nurl=x\npassword=<<SECRET>>\n\n",
        ),
        planted_at(
            "go value",
            "G0" + random_text("go", 12),
            "config map[password:<<SECRET>> user:bob]\n",
            "config {User:bob Password:<<SECRET>> Host:db}\n",
            'config &{User:"bob", Password:"<<SECRET>>", Host:"db"}\n',
        ),
    )
