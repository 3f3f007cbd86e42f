"""Judges a claim against the cited lines: checked, cited, or not found.

The weakest assertion of a claim determines the outcome. An assertion without a subject inherits the subject of the
previous assertion. The subject's record must show the assertion.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.evidence.accounts import NAME
from holmes.evidence.records import (
    CHECKED,
    CITED,
    EMPTY,
    Judgement,
    Passage,
    all_of,
    best_of,
    not_found,
    tokens_of,
)
from holmes.evidence.words import Assertion, Token, assertions_of, first_thing, names_of, said, states_of, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence


from holmes.evidence.readings import Readings

_FEWEST_WORDS: Final = 5
_SIGNS = expression(r"[`\"'()]|[.,:;](?=\s|$)")


def judge(statement: str, passages: Sequence[Passage]) -> Judgement:
    """Judge `statement` against all `passages` together."""
    passage = Passage.joined(passages)
    walk = _Walk(passage)
    for assertion in assertions_of(statement):
        walk.take(assertion)
    judgement = walk.finish()
    if judgement.outcome == "not_found" and stands_there(statement, passage):
        return CITED
    return judgement


def stands_there(statement: str, passage: Passage) -> bool:
    """Return whether the cited lines quote the whole statement. A quotation does not prove a statement."""
    cited = _words(passage.text)
    parts = (_words(statement), _words(statement.partition(": ")[2]))
    return any(part in cited and part.count(" ") > _FEWEST_WORDS for part in parts)


def _words(text: str) -> str:
    return tokens_of(_SIGNS.sub(" ", text)).casefold()


class _Walk(Readings):
    """Processes the assertions of a claim in order, with the context of the previous assertion."""

    def __init__(self, passage: Passage) -> None:
        super().__init__(passage)
        self._judgements: list[Judgement] = []
        values = (each.value for record in passage.cited for each in record.fields)
        self._codes = frozenset(value for value in values if value.isupper() and value.isalpha())
        self._waiting: list[Token] = []
        self._counted: Token | None = None
        self._held: tuple[Token, ...] = ()
        self._lead: tuple[Token, ...] = ()
        self._element: Token | None = None

    def take(self, assertion: Assertion) -> None:
        """Judge one assertion.

        An assertion that contains only names provides the subjects of the next assertion, or continues a list.
        """
        tokens = (*self._lead, *assertion.tokens)
        self._lead = tokens if assertion.leads and _is_label(tokens) else ()
        if self._lead:
            return
        tokens = (*self._with_counted(tuple(self._named(tokens))), *self._held)
        self._held = tokens if self._waits(tokens) else ()
        if self._held:
            return
        is_caused = bool(tokens) and tokens[0].has("cause") and not tokens[0].quoted
        tokens = self._with_total(self._with_element(tokens[is_caused:]))
        content = [token for token in tokens if not token.is_neutral]
        named = [token for token in content if self._is_subject(token)]
        if named and _are_names(tokens, content, named):
            self._waiting += named
        elif content:
            self._judge(tokens, named, goes_on=assertion.goes_on, is_caused=is_caused)

    def _judge(self, tokens: tuple[Token, ...], named: Sequence[Token], *, goes_on: bool, is_caused: bool) -> None:
        """Judge an assertion about its own subjects, or about the subjects of the previous assertion."""
        subjects = self._waiting + [token for token in self._first_names(tokens) if token in named]
        if subjects:
            self._subjects = tuple(dict.fromkeys(subjects))
            self._is_foreign = False
        elif self._states_another(first_thing(tokens), tokens) or (
            goes_on and self._states_another(self._last[-1] if self._last else None, tokens)
        ):
            self._subjects, self._is_foreign = (), True  # example: `runs on node-2; node-2 is ready`
        elif (
            self._last
            and tokens[0].text.casefold() in words_of("relative pronoun")
            and self._last[-1] not in self._subjects
        ):
            self._subjects, self._is_foreign = (), True  # example: `on node-2, which is not ready`
            if any(token.concept("state") in ("exists", "notfound") for token in tokens):
                tokens = (*self._last[-2:], *tokens)  # example: `the volume data, which does not exist`
        self._waiting = []
        if not goes_on or subjects:
            self._shared = None
        judgement = self._continued(tokens, self._assertion(tokens))
        if is_caused:
            judgement = self._as_cause(judgement)
        self._last = tokens
        if judgement is not EMPTY:
            self._judgements.append(judgement)

    def _states_another(self, token: Token | None, tokens: tuple[Token, ...]) -> bool:
        """Return whether the result is a table, `token` is an unknown name and `tokens` state its condition."""
        is_row = any(record.form == "row" for record in self._passage.cited)
        is_name = token is not None and token.is_value and NAME.fullmatch(token.text) and not self._is_subject(token)
        return bool(is_row and is_name and self._subjects and states_of(tokens))

    def _waits(self, tokens: tuple[Token, ...]) -> bool:
        """Return whether an assertion only introduces the next one: `in total,` or `one second after the restart,`."""
        content = [token for token in tokens if not token.is_neutral]
        if content and all(token.has("total") for token in content):
            return True
        says_more = any(t.shape == "number" or t.is_value or t.has("state") for t in content)
        if any(token.has("superlative") for token in content) and not says_more:
            return True
        is_later = len(content) > 1 and content[0].shape == "number" and content[1].has("later")
        return is_later and all(record.form == "entry" for record in self._passage.cited)

    def _named(self, tokens: tuple[Token, ...]) -> list[Token]:
        """Mark unquoted names in `tokens`: names from the result, and the word after `called`."""
        found: list[Token] = []
        for token in tokens:
            is_called = bool(found) and found[-1].text.casefold() in words_of("called")
            is_word = token.shape == "word" and not (token.tags - {("noun", "")})
            is_name = is_word and (token.text in self._known or is_called or token.text in self._codes)
            found.append(replace(token, shape="name", tags=frozenset()) if is_name else token)
        return found

    def _with_element(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """Add the container or condition of the previous assertion if `tokens` do not name one."""
        labels = {label for record in self._passage.cited for label in record.labels}
        own = [token for token in tokens if token.text in labels]
        if own or any(self._is_subject(token) for token in tokens):
            self._element = own[0] if len(own) == 1 and own[0].is_value else None
        elif self._element is not None and any(not token.is_neutral for token in tokens):
            return (self._element, *tokens)
        return tokens

    def _with_total(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """Repeat the sum word of the previous assertion: `together` in `together they use 2 CPU and hold 4Gi`."""
        word = next((token for token in self._last if token.has("total")), None)
        is_number = any(token.shape == "number" for token in tokens)
        says_whose = any(token.has(each) for token in tokens for each in ("total", "all", "of which", "state", "kind"))
        if word is None or not is_number or says_whose or any(self._is_subject(token) for token in tokens):
            return tokens
        return (word, *tokens)

    def _with_counted(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """Add the counted kind if `tokens` omit it: `of which 2`, `of 5 pods, 3 are`."""
        own = said(tokens, "kind")
        counted = own or self._counted or self._listed_kind()
        if own is None and counted is not None:
            if any(token.has("of which") for token in tokens):
                tokens = tuple(counted if token.has("of which") else token for token in tokens)
            elif self._counted is not None and not self._subjects and _counts_on(tokens):
                tokens = (tokens[0], counted, *tokens[1:])
        self._counted = own or self._counted
        return tokens

    def _listed_kind(self) -> Token | None:
        kind = self._passage.source.kind
        return Token(shape="word", text=kind, tags=frozenset({("kind", kind)})) if kind else None

    def _continued(self, tokens: tuple[Token, ...], judgement: Judgement) -> Judgement:
        """Return the judgement of an assertion that may continue the previous assertion: `ports 80 and 443`."""
        says_more = any(token.has(each) and not token.quoted for token in tokens for each in ("field", "state"))
        if judgement.outcome == "checked" or not self._last or says_more:
            return judgement
        values = [each for each, token in enumerate(self._last) if token.shape == "number" or token.is_value]
        if values and any(token.shape == "number" or token.is_value for token in tokens):
            head = tuple(each for each in self._last[: values[-1]] if each.shape != "number" and not each.is_value)
            longer = self._assertion((*head, *tokens))
            if longer.outcome == "checked":
                return longer
        return judgement

    def _as_cause(self, judgement: Judgement) -> Judgement:
        """Limit the judgement of a cause to *cited*, unless one log entry, event or condition states both facts."""
        return CITED if judgement.outcome == "checked" and not self._is_told() else judgement

    def _is_told(self) -> bool:
        cited = self._passage.cited
        return len(cited) == 1 and cited[0].form in ("entry", "event")

    def finish(self) -> Judgement:
        """Return the final judgement. Names at the end are subjects or further values of the last assertion."""
        if self._held or self._lead:
            self._judgements.append(CITED)
        waiting, self._waiting = self._waiting, []
        is_list = all(token.is_neutral or token.has("only") for token in self._last)
        if waiting and is_list:
            self._judgements = [each for each in self._judgements if each is not EMPTY]
            return all_of([*self._judgements, self._listed([*self._subjects, *waiting] if self._last else waiting)])
        for token in waiting:
            judgement = self._named_again(token)
            self._judgements.append(judgement)
        return replace(all_of(self._judgements))

    def _named_again(self, token: Token) -> Judgement:
        """Judge the last assertion again with another name: `two of them are Failed: a and b`."""
        subjects, self._subjects = self._subjects, (token,)
        plain = tuple(each for each in self._last if each not in subjects and not _counts_things(each))
        judgement = self._assertion(plain)
        self._subjects = subjects
        if judgement.outcome != "checked" and subjects:
            other = self._assertion((*[each for each in self._last if not each.is_value], token))
            judgement = best_of([judgement, other])
        return judgement

    def _listed(self, names: Sequence[Token]) -> Judgement:
        """Judge `the pods are a, b and c`. The result must contain these pods and no others."""
        found = frozenset(name for record in self._passage.cited for name in record.names)
        missing = [token.text for token in names if not names_of(token) & found]
        if missing:
            return not_found(*missing)
        is_all = len(names) == len(self._passage.records) and self._passage.is_whole
        return CHECKED if is_all and len(names) > 1 else CITED

    def _first_names(self, tokens: tuple[Token, ...]) -> list[Token]:
        """Return the names at the start of an assertion.

        If it starts with no name and no subject is known, return the first name anywhere in it.
        """
        found: list[Token] = []
        for token in tokens:
            if self._is_subject(token):
                if token in found:
                    break  # for example a namespace with the same name
                found.append(token)
            elif token.shape == "number" or token.is_value or token.has("state") or token.has("field"):
                break
        is_text = all(record.form == "entry" for record in self._passage.cited)
        if not found and not self._subjects and not self._waiting and not is_text:
            found = [token for token in tokens if self._is_subject(token)][:1]
        return found


def _are_names(tokens: Sequence[Token], content: Sequence[Token], named: Sequence[Token]) -> bool:
    """Return whether an assertion only names objects: `the two volumes a`."""
    if any(token.has("relation") and not token.has("neutral") for token in tokens) or len(set(named)) < len(named):
        return False
    return all(
        token in named
        or any(token.has(each) for each in ("kind", "both", "noun"))
        or (token.has("field") and after in named)
        for token, after in zip(content, (*content[1:], None), strict=True)
    )


def _is_label(tokens: tuple[Token, ...]) -> bool:
    """Return whether an assertion only names the owner of the next value: `memory request of app:`."""
    return any(t.has("field") for t in tokens) and not any(t.shape == "number" or t.has("state") for t in tokens)


def _counts_on(tokens: tuple[Token, ...]) -> bool:
    """Return whether an assertion continues a count: `3 are ready` after `of 5 pods`."""
    return len(tokens) > 2 and tokens[0].is_count and tokens[1].is_neutral


def _counts_things(token: Token) -> bool:
    """Return whether a token states how many names follow."""
    return token.has("of which") or token.has("both") or token.has("all") or (token.is_count or bool(token.parts))
