"""Redaction of texts: properties, forms, complexity."""

# ruff: noqa: E501  the texts stay as tools print them

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import random
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holmes.redaction.kinds import kinds
from holmes.redaction.redactor import Redactor, redact_off_loop
from holmes.values.errors import HolmesError
from tests.redaction.look_alikes import LOOK_ALIKES
from tests.support.planted_secrets import planted_secrets

KEY = b"a key of the tests, 32 bytes long"
REDACTOR = Redactor(KEY)
PLANTED = planted_secrets()
CARRIERS = tuple(carrier for secret in PLANTED for carrier in secret.carriers)

CHARACTERS = st.sampled_from(
    ["a", "7", "=", ":", '"', "'", "\\", "\n", " ", "-", "{", "}", "[", "]", "/", "@", "é", "İ", "\r", "."]
)
WORDS = st.sampled_from(
    ["password", "token=", "secret: ", "--api-key ", "kind: Secret", '"kind":"Secret"', "data:", "stringData:", "  x: y\n",
     "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "(REDACTED)", "(REDACTED:password:12345678)", "(REDACTED:",
     "Bearer ", "name: ", "value: ", "://u:", "\\n", '\\"', "hunter2", "| \n", "eyJhbGciOiJub25lIn0.e30.", "cookie: a="]
)  # fmt: skip
PIECES = st.one_of(CHARACTERS, WORDS, st.sampled_from(CARRIERS), st.sampled_from(LOOK_ALIKES))
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@pytest.mark.row("N13")
@settings(max_examples=300, deadline=None)
@example("passwordcookie: a=a2026-11-22T01:20:50Z INFO shop.worker for upstream, attempt 2\n")
@example('passwordcookie: a=x509: certificate signed by unknown authority (possibly because of "crypto/rsa: error")a')
@given(TEXTS)
def test_redacting_twice_is_redacting_once_and_lines_stay(text: str) -> None:
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once) is once
    assert len(once.splitlines()) == len(text.splitlines())
    assert once.count("\n") == text.count("\n")


@pytest.mark.row("N13")
@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_redacted_without_an_error(text: str) -> None:
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once) is once


SCALARS = st.one_of(
    st.sampled_from([secret.secret for secret in PLANTED]),
    st.integers(),
    st.booleans(),
    st.none(),
    st.text(max_size=12),
)
KEYS = st.sampled_from(
    [
        "password",
        "token",
        "api_key",
        "name",
        "value",
        "data",
        "stringData",
        "kind",
        "secret",
        "x",
        "args",
        "url",
        "auth",
    ]
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=5), inner.map(json.dumps), st.just("Secret")
    ),
    max_leaves=12,
)


@pytest.mark.row("N13")
@settings(max_examples=100, deadline=None)
@given(JSON, st.sampled_from([None, 2]))
def test_json_stays_json(value: object, indent: int | None) -> None:
    json.loads(REDACTOR.redact(json.dumps(value, indent=indent)))


@pytest.mark.row("N13")
def test_yaml_stays_yaml() -> None:
    read = 0
    for carrier in CARRIERS[::5]:
        try:
            before = list(yaml.safe_load_all(carrier))
        except yaml.YAMLError:
            continue
        after = list(yaml.safe_load_all(REDACTOR.redact(carrier)))
        assert [type(document) for document in after] == [type(document) for document in before], carrier
        read += 1
    assert read > 40


@pytest.mark.row("N13")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_size_of_the_pieces_changes_nothing(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311
    texts = source.sample([*CARRIERS, *(f"{text}\n" for text in LOOK_ALIKES)], 300)
    text = "---\n".join(texts)
    piece_characters = source.randint(9 * 1024, 16 * 1024)
    assert len(text) > 2 * piece_characters
    assert Redactor(KEY, piece_characters=piece_characters).redact(text) == REDACTOR.redact(text)


@pytest.mark.row("N13")
@pytest.mark.parametrize("position", [5_000, 16_250, 16_380, 32_750])
def test_a_secret_in_one_long_line_is_found_at_any_place(position: int) -> None:
    redactor = Redactor(KEY, piece_characters=16_384)
    for secret in PLANTED:
        carrier = secret.carriers[0]
        if "\n" in carrier.strip():
            continue
        line = "x " * (position // 2) + carrier.strip() + " y" * 9_000
        assert secret.secret not in redactor.redact(line), secret.kind


@pytest.mark.row("N13")
def test_a_secret_longer_than_a_piece_is_masked_to_its_end() -> None:
    value = "Aa1" * 200_000
    for text in (
        f'{{"password":"{value}","mode":"fast"}}',
        f"token={value} mode=fast",
        f"password: |\n  {value}\nmode: fast",
    ):
        redacted = Redactor(KEY, piece_characters=65_536).redact(text)
        assert "Aa1" not in redacted
        assert "fast" in redacted


@pytest.mark.row("N13")
def test_a_secret_object_longer_than_a_piece_is_masked_whole() -> None:
    redactor = Redactor(KEY, piece_characters=16_384)
    entries = "".join(f"  entry-{number}: YWJj{number:08d}\n" for number in range(1_500))
    text = f"apiVersion: v1\ndata:\n{entries}kind: Secret\nmetadata:\n  name: x\n---\nkind: ConfigMap\ndata:\n  a: YWJj00000001\n"
    redacted = redactor.redact(text)
    assert redacted.count("YWJj") == 1
    assert redacted.endswith("kind: ConfigMap\ndata:\n  a: YWJj00000001\n")
    as_json = json.dumps(
        {"data": {f"e{number}": f"YWJj{number:08d}" for number in range(1_500)}, "kind": "Secret"}, indent=2
    )
    assert "YWJj" not in redactor.redact(as_json)
    assert json.loads(redactor.redact(as_json))["kind"] == "Secret"


def test_the_same_secret_has_one_placeholder_under_one_key_and_another_under_another() -> None:
    text = "DB_PASSWORD=hunter2\nurl: postgres://u:hunter2@db/x\n--password hunter2\npassword: 'hunter2'\n"
    found = re.findall(r"\(REDACTED:password:\w{8}\)", REDACTOR.redact(text))
    assert len(found) == 4
    assert len(set(found)) == 1
    assert REDACTOR.redact(text) == Redactor(KEY).redact(text)
    assert REDACTOR.redact(text) != Redactor(KEY[::-1]).redact(text)


def test_a_secret_and_its_base64_form_have_one_number() -> None:
    redacted = REDACTOR.redact("kind: Secret\ndata:\n  password: aHVudGVyMg==\n---\nDB_PASSWORD=hunter2\n")
    assert len(set(re.findall(r"\(REDACTED:password:\w{8}\)", redacted))) == 1


def test_an_access_key_and_the_secret_beside_it_are_both_masked() -> None:
    text = "user,AK" + "IAIOSFODNN7EXAMPL2,wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n"
    redacted = REDACTOR.redact(text)
    assert redacted.count("(REDACTED:") == 2
    assert "wJalr" not in redacted


def test_certificates_of_a_secret_stay_and_the_key_beside_them_does_not() -> None:
    certificate = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUQK"
    redacted = REDACTOR.redact(
        f"kind: Secret\ndata:\n  tls.crt: {certificate}\n  tls.key: YWJjZGVm\ntype: kubernetes.io/tls\n"
    )
    assert certificate in redacted
    assert "YWJjZGVm" not in redacted


def test_a_key_without_its_beginning_is_masked() -> None:
    body = "\n".join("MII" + "aB3" * 20 for _ in range(5))
    redacted = REDACTOR.redact(f"done\n\n{body}\n-----END RSA PRIVATE KEY-----\nready\n")
    assert "aB3" not in redacted
    assert "ready" in redacted


def test_numbers_in_json_become_strings() -> None:
    assert json.loads(REDACTOR.redact('{"password": 12345678, "tokens": 500}'))["tokens"] == 500
    assert "12345678" not in REDACTOR.redact('{"password": 12345678, "tokens": 500}')


def test_the_number_of_masked_places_is_told() -> None:
    assert REDACTOR.redaction("DB_PASSWORD=hunter2\nAPI_TOKEN=abc1\nMODE=fast\n").masked == 2
    assert REDACTOR.redaction("MODE=fast\n").masked == 0


def test_a_short_key_is_refused() -> None:
    with pytest.raises(HolmesError, match="at least 16"):
        Redactor(b"short")


def test_the_registry_names_every_kind_once_and_has_many() -> None:
    names = [kind.name for kind in kinds()]
    assert len(set(names)) == len(names) > 60
    assert all(kind.literals for kind in kinds())


@pytest.mark.row("N13")
def test_threads_share_a_redactor() -> None:
    text = "".join(CARRIERS[:200])
    expected = REDACTOR.redact(text)
    with ThreadPoolExecutor(4) as pool:
        assert all(result == expected for result in pool.map(REDACTOR.redact, [text] * 8))


HOSTILE = {
    "letters": "a", "equals": "=", "colons": ":", "quotes": '"', "single quotes": "'", "backslashes": "\\", "dashes": "-",
    "braces": "{", "dots": ".", "blanks": " ", "lines": "\n", "base64": "QUJD", "jwt starts": "eyJ", "jwts": "eyJa.",
    "names": "password=", "references": "password=$", "open strings": 'password="', "weak names": "token: ",
    "options": "--token ", "urls": "://u:p", "keys": "-----BEGIN PRIVATE KEY-----\n", "key ends": "aaa\n-----END PRIVATE KEY-----\n",
    "yaml secrets": "kind: Secret\n", "json secrets": '"kind":"Secret"', "nested secrets": '{"kind":"Secret",',
    "string data": "stringData:\n", "blocks": "password: |\n x\n", "pairs": "name: password ", "elements": "</password>",
    "curl": "curl -u ", "mysql": "mysql\n - x", "cookies": "cookie: a=", "hashes": "$2b$12$", "escapes": 'password=\\"\\\\\\"',
    "placeholders": "(REDACTED:password:12345678)", "prefixes": "sk-", "client secrets": "aaa8Q~", "long names": "secret_",
    "url escapes": "%2525", "entities": "&amp;quot;", "unicode escapes": "\\u0022", "zeros": "p\0", "unseen": "\u200b",
    "values": "value: x\nname: ", "fields": "name: a\nx: y\n", "attributes": "<a name=", "plists": "<key>a</key>",
    "inserts": "insert into t (password) values (", "identified": "identified by 'x", "sentences": "password is ",
    "go maps": "Data:map[kind:Secret ", "byte lists": "[]uint8{0x1, ", "wrapped": "eyJabcd\n", "wrapped prefixes": "ghp_\n",
    "pgpass": "a:10:b:c:d\n", "programs": "mongo -p", "netrc": "machine a.b login c password ", "packed": "H4sIAAAA",
    "wrapped base64": "QUJDREVGR0hJSktMTU5P\n", "templates": "password=${", "calls": "password=f(", "dsn": "://a:@",
    "keys in one line": "-----BEGIN PRIVATE KEY-----A", "joined words": "key-----a", "names in one word": "pass:", "headings": "token|a\n", "arguments": "    Args:\n      -p\n",
}  # fmt: skip


@pytest.mark.row("N13")
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_does_not_hide_what_follows_it(unit: str) -> None:
    assert "hunter2x" not in REDACTOR.redact(unit * (8_000 // len(unit)) + "\n\nDB_PASSWORD=hunter2x\n")


def nested_secrets(count: int) -> str:
    kinds = "".join(" " * (number % 80) + "kind: Secret\n" for number in range(count))
    return f"{kinds}kind: Secret\ndata:\n  blob: YWJjZGVmZ2hp\n---\n- kind: Secret\n  data:\n    x: bGVha2xlYWs=\n"


def test_secrets_inside_of_secrets_at_many_depths_are_masked() -> None:
    for count in (1, 2_000):
        redacted = REDACTOR.redact(nested_secrets(count))
        assert "YWJj" not in redacted
        assert "bGVha" not in redacted


def nested_maps(depth: int) -> str:
    return "".join(" " * level + "stringData:\n" for level in range(depth)) + " " * depth + "blob: leaked\n"


def test_maps_of_strings_inside_of_each_other_are_masked() -> None:
    assert "leaked" not in REDACTOR.redact(nested_maps(240))


def packed(size: int) -> str:
    text = "mode=fast password=hunter2x " * size
    for _ in range(3):
        text = base64.b64encode(text.encode()).decode()
    return text


def test_base64_inside_of_base64_is_masked() -> None:
    for size in (10, 4_000):
        assert "(REDACTED:" in REDACTOR.redact(packed(size))


def packed_zeros() -> str:
    return base64.b64encode(gzip.compress(b"0" * 8_000_000, mtime=0)).decode()


def test_a_word_that_unpacks_to_more_than_can_be_read_is_masked() -> None:
    redacted = REDACTOR.redact(f"one {packed_zeros()} two")
    assert re.fullmatch(r"one \(REDACTED:secret:\w{8}\) two", redacted)


def test_words_that_are_decoded_together_are_judged_apart() -> None:
    def word(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    harmless, secret, cut = word("hello world, how are you"), word("DB_PASSWORD=hunter2x"), word("the password is =")
    redacted = REDACTOR.redact(f"{harmless} {cut} {harmless} {secret} {harmless}")
    assert secret not in redacted
    assert redacted.startswith(f"{harmless} {cut} {harmless} (REDACTED:")
    assert redacted.endswith(f") {harmless}")


@pytest.mark.row("N13")
def test_a_secret_behind_a_megabyte_in_the_same_line_is_masked() -> None:
    line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 30_000
    assert "hunter2x" not in REDACTOR.redact(f"{line} password=hunter2x")


def ordinary_logs(characters: int) -> str:
    line = (
        "2026-11-22T01:20:50.123Z INFO shop.orders.worker-7 request_id=7f3a9c1e path=/api/v1/orders/42 status=200 "
        'duration=12ms host=10.0.3.7 msg="order processed" pod=shop-7d4b9c6f5-x2k4p\n'
    )
    return line * (characters // len(line))


@pytest.mark.row("N13")
def test_ordinary_logs_stay_the_same_object() -> None:
    text = ordinary_logs(1_000_000)
    assert REDACTOR.redact(text) is text


@pytest.mark.row("N13")
def test_blanks_and_letters_beyond_latin_1_do_not_hide_a_secret() -> None:
    for between in ("…", "\u2003", "\u2028", "\u3000", "説明", "İ", "\U0001f600"):
        redacted = REDACTOR.redact(
            f"{between}\nAuthorization: Basic Ym9iOmh1bnRlcjI={between} DB_PASSWORD=hunter2 {between}"
        )
        assert "hunter2" not in redacted
        assert "Ym9i" not in redacted
        assert redacted.startswith(f"{between}\nAuthorization: Basic (REDACTED:")
        assert redacted.endswith(between)


@pytest.mark.row("N13")
async def test_a_long_text_does_not_hold_up_the_event_loop() -> None:
    text = ordinary_logs(6_000_000) + "DB_PASSWORD=hunter2\n"
    turns = 0
    done = asyncio.create_task(redact_off_loop(REDACTOR, text))
    while not done.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert "hunter2" not in await done
    assert turns > 5


async def test_off_the_loop_a_clean_text_is_the_same_object() -> None:
    for text in ("MODE=fast", ordinary_logs(100_000)):
        assert await redact_off_loop(REDACTOR, text) is text
