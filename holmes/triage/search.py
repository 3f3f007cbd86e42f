"""Finds the subject of a question.

Every word is looked up in the cluster before it is treated as an ordinary word. A word that must be a name, because it
is quoted, is next to a kind, or cannot be a word of a language, but that no object has, is reported as missing with the
most similar names. Words that are neither names nor in the vocabulary are kept, so that no answer ignores them.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.triage import grammar, program_nouns
from holmes.triage.grammar import NAME, begins_clause, describes, is_verb_or_adjective, must_be_name, ruled_out, says
from holmes.triage.guessing import LEAST_TYPED, SURE, guessed_from, sorted_out
from holmes.triage.names import alike, is_of, is_product
from holmes.triage.owners import with_missing_owners
from holmes.triage.points import NUMBER_WORDS
from holmes.triage.subjects import Missing, Named, Subject
from holmes.triage.vocabulary import symptoms_in, vocabulary, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.names import Names
    from holmes.triage.question import Question
    from holmes.values.findings import ObjectRef

_NUMBER: Final = expression(
    rf"[\d.:/-]+[a-z%]{{0,8}}|[a-z]?\d{{1,3}}[a-z%]{{0,3}}|[<>]=?|(?:{'|'.join(NUMBER_WORDS)})(?:mal)?"
)
_INSIDE, _LOCATING = word_list("inside"), word_list("locating")
_DETERMINERS, _NAMING = word_list("determiners"), word_list("naming")
_PLACES, _PLACE_NOUNS = word_list("places"), word_list("place nouns")
_ACTED_ON, _EVERYDAY = word_list("beside names"), word_list("everyday nouns")
_INTERROGATIVES, _ADJECTIVES = word_list("interrogatives"), word_list("adjectives")
_PREPOSITIONS: Final = _LOCATING | word_list("of") | {"from", "with"}
_MODALS, _ADVERBS = word_list("modals"), word_list("adverbs after nouns")
_BEING, _OUTSIDE = word_list("being"), frozenset({"outside", "ausserhalb", "de"})  # the end of "fuera de", "hors de"
_PORT: Final = expression(r"(?<=[a-z0-9]):\d{2,5}$")
_SERVING: Final = ("Deployment", "StatefulSet", "DaemonSet", "Service")
_LEAST_NAMED, _MOST_UNKNOWN, _MOST_COMPARED, _MOST_PARTS = 4, 6, 12, 3


def find_subject(question: Question, names: Names, namespace: str) -> tuple[Question, Subject]:
    """Find the subject of `question`. A namespace in the question takes precedence over `namespace`.

    The returned question no longer contains the phrases that turned out to be names.
    """
    search = _Search(question, names, namespace)
    subject = search.subject(namespace)
    return search.question, with_missing_owners(search.question, subject, names)


class _Search:
    """One search for the names in one question."""

    def __init__(self, question: Question, names: Names, given: str) -> None:
        self.question = question
        self.names = names
        self._given = (given,) if given in names.namespaces and not question.whole_cluster else ()
        self.words = question.words
        self._known = {index for each in question.found for index in range(each.first, each.last + 1)}
        self._used: set[int] = set()
        self._beside: set[str] = set()
        self._compared = 0
        self._excluding, self._included = ruled_out(question)

    def subject(self, given: str) -> Subject:
        missing: list[Missing] = []
        places = tuple(self._namespaces(missing))
        spaces = tuple(dict.fromkeys(name for index, name in places if not self._is_excluded(index)))
        excluded_spaces = tuple(dict.fromkeys(name for index, name in places if self._is_excluded(index)))
        if not spaces and not missing and given not in ("", "*") and not self.question.whole_cluster:
            spaces = tuple(self._existing_namespace(given, missing))
        missing += self._places()
        named: list[Named] = []
        excluded: list[ClusterObject] = []
        unknown: list[str] = []
        values: list[str] = []
        elsewhere: list[ObjectRef] = []
        for index, word in enumerate(self.words):
            if index in self._used or self._is_data(word) or word in self.names.principals or says(self.words, index):
                continue
            found = None if self._is_value(index, word) else self._named(index, word, spaces)
            if isinstance(found, Named) and self._excluding < index < self._included:
                excluded += found.objects
            elif isinstance(found, Named):
                named.append(found)
            elif isinstance(found, Missing):
                missing.append(found)
                elsewhere += [each.ref for each in self.names.named(found.name, found.kind)]
            elif self._is_value(index, word):
                values.append(word)
            elif index not in self._known and not vocabulary().is_ordinary(word) and not symptoms_in((word,)):
                unknown.append(word)
        images = [word for word in unknown if self.names.is_image(word)]
        unknown = [word for word in unknown if word not in images]
        named += self._addressed(missing)
        place = spaces[0] if len(spaces) == 1 else ""
        missing, unknown = sorted_out(self.question, named, missing, unknown, elsewhere, place)
        spaces = self._around(named, spaces)
        if not named and not missing and not excluded:
            guessed, unknown = guessed_from(self.names, self.question, unknown, spaces, self._nearest)
            named += guessed or program_nouns.runs_named(self.names, self.question, spaces)
        return Subject(
            named=tuple({each.objects: each for each in named}.values()),
            namespaces=spaces,
            kinds=self.question.kinds,
            missing=tuple(missing),
            elsewhere=tuple(dict.fromkeys(elsewhere)),
            values=tuple(dict.fromkeys(values)),
            images=tuple(dict.fromkeys(images)),
            unknown=tuple(dict.fromkeys(unknown))[:_MOST_UNKNOWN],
            excluded=tuple(excluded),
            excluded_namespaces=excluded_spaces,
        )

    def _around(self, named: Sequence[Named], spaces: tuple[str, ...]) -> tuple[str, ...]:
        """Return the namespaces of the question, without a word that is a namespace by chance.

        "infer waits for a gpu" is not about the namespace `gpu` if `infer` is in another one.
        """
        elsewhere = named and not any(each.namespace in ("", *spaces) for each in named[0].objects)
        return self._given if elsewhere and self._beside.issuperset(spaces) else spaces

    def _is_excluded(self, index: int) -> bool:
        """Return whether a word is after "except", or after "not in"."""
        negations = [each.last for each in self.question.found if each.sense == "concept" and each.name == "negation"]
        return self._excluding < index < self._included or any(
            last < index and self._is_beside(self.words[last + 1 : index])
            and (index - last > 1 or self.words[last] in _OUTSIDE)
            for last in negations
        )  # fmt: skip

    def _is_beside(self, between: tuple[str, ...]) -> bool:
        return all(word in _LOCATING | _NAMING | _BEING | {"namespace"} for word in between)

    def _addressed(self, missing: list[Missing]) -> Iterator[Named]:
        """Yield the objects at the addresses and hosts of the question. A host that is unknown here is missing."""
        for address in (*self.question.addresses, *self.question.hosts):
            objects = self.names.at_address(address) or self.names.of_host(address)
            if objects:
                yield Named(name=address, objects=objects)
            elif not address.isdigit():
                missing.append(Missing(name=address, kind="address"))

    def _is_data(self, word: str) -> bool:
        """Return whether a word is a number, a time, a label, an address or the beginning of names."""
        in_label = any(word in (term.key, term.value, str(term)) for term in self.question.labels)
        in_address = any(word == each or word.startswith(f"{each}:") for each in self.question.data)
        in_period = self.question.period is not None and word in self.question.period.text.split()
        number = _NUMBER.fullmatch(word) is not None and not (self.names.named(word) or self.names.with_image(word))
        ticket = word in self.question.tickets and not self.names.knows(word)
        return in_label or in_address or in_period or number or ticket or word in self.question.prefix_words

    def _is_value(self, index: int, word: str) -> bool:
        """Return whether a word that names no object is the value of a label or an annotation."""
        plain = word.strip("#@")
        keyed = index > 0 and (self.words[index - 1], plain) in self.names.pairs  # "team green"
        known = not keyed and (index in self._known or plain in vocabulary().stop or plain not in self.names.values)
        return not known and not self.names.named(plain) and not self.names.labelled(plain)

    def _places(self) -> Iterator[Missing]:
        """Yield environments and other clusters, which the objects of this cluster do not name."""
        for index, word in enumerate(self.words):
            before = [each for each in self.words[max(0, index - 3) : index] if each not in _DETERMINERS]
            beside = {*before[-1:], *self.words[index + 1 : index + 2]} & _PLACE_NOUNS
            located = bool(_LOCATING.intersection(before[-2:] if beside else before[-1:]))
            possible = (
                located and index not in self._used and index not in self._known and word not in _PLACE_NOUNS
                and (word in _PLACES or (beside and not vocabulary().is_ordinary(word)))
            )  # fmt: skip
            known = self.names.named(word) or word in self.names.values or self._is_data(word)
            if possible and not known and NAME.fullmatch(word):
                self._used.add(index)
                yield Missing(name=word, kind="place")

    def _namespaces(self, missing: list[Missing]) -> Iterator[tuple[int, str]]:
        if self.question.namespace_flag:
            yield from ((0, name) for name in self._existing_namespace(self.question.namespace_flag, missing))
        for each in self.question.found:
            if each.sense != "kind" or each.name != "Namespace":
                continue
            before, after = self._neighbours(each.first, each.last)
            after = self._past_excluding(after)
            known = [index for index in (*after, *before) if self.words[index] in self.names.namespaces]
            if known:
                yield from self._with_more(known[0])
                continue
            index = next(iter(after), None)
            aside = index is not None and self.words[index] in _ADVERBS  # "in this namespace though"
            short = each.last - each.first < _LEAST_NAMED - 1
            if index is not None and short and not aside and self._may_be_name(index):
                self._used.add(index)
                yield from ((index, name) for name in self._existing_namespace(self.words[index], missing))
        for index, word in enumerate(self.words):
            plain = word.partition("/")[0]
            if index in self._used or plain not in self.names.namespaces:
                continue
            inside = index > 0 and self.words[index - 1] in _INSIDE
            named = any(each.kind != "Namespace" for each in self.names.named(word))
            if "/" not in word and (inside or not (named or index in self._known)):
                found = tuple(self._with_more(index))
                by_chance = not inside and word.isalpha() and word not in self._given
                self._beside |= {name for _, name in found} if by_chance else set()
                yield from found

    def _past_excluding(self, after: tuple[int, ...]) -> tuple[int, ...]:
        """Return the position behind "except" in "all namespaces except shop"."""
        return (after[0] + 1,) if after and after[0] == self._excluding and after[0] + 1 < len(self.words) else after

    def _with_more(self, index: int) -> Iterator[tuple[int, str]]:
        """Yield the namespace at `index`, and the namespaces of the list that it begins: `a, b and c`."""
        while index < len(self.words):
            if self.words[index] in self.names.namespaces:
                self._used.add(index)
                here = tuple(each for each in self.question.found if (each.first, each.last) != (index, index))
                self.question = replace(self.question, found=here)
                yield index, self.words[index]
            elif self.words[index] not in ("and", "or", "und", "oder", "y", "e", "o", "et", "ou"):
                return
            index += 1

    def _existing_namespace(self, name: str, missing: list[Missing]) -> Iterator[str]:
        if name in self.names.namespaces or not self.names.state.covers("Namespace"):
            yield name
            return
        near = difflib.get_close_matches(name, sorted(self.names.namespaces), n=2, cutoff=0.6)
        refs = tuple(each.ref for one in near for each in self.names.state.of("Namespace") if each.name == one)
        missing.append(Missing(name=name, kind="Namespace", nearest=refs))

    def _neighbours(self, first: int, last: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the position before and the position after a phrase, without words such as "named"."""
        after = last + 1
        while after < len(self.words) and self.words[after] in _NAMING:
            after += 1
        return (first - 1,) if first > 0 else (), (after,) if after < len(self.words) else ()

    def _may_be_name(self, index: int) -> bool:
        word = self.words[index].rstrip("…*")
        return (
            index not in self._known
            and index not in self._used
            and word not in vocabulary().stop
            and NAME.fullmatch(word) is not None
            and not self._is_data(word)
        )

    def _kind_beside(self, index: int) -> tuple[str, bool]:
        """Return the kind directly before or after a word, and whether the word is surely its name.

        In "deployment invoices" and "the booking service", it is. Next to a plural, it can be an adjective.
        """
        for each in self.question.found:
            if each.sense != "kind" or each.name == "Namespace" or each.first <= index <= each.last:
                continue
            before, after = self._neighbours(each.first, each.last)
            plural = vocabulary().is_plural(self.words[each.last])
            leading = self.words[max(0, each.first - 1) : each.first + 1]
            asked = index in after and not _INTERROGATIVES.isdisjoint(leading)
            if asked or (index in (*before, *after) and is_product(each.name)):
                return (each.name, False) if self.names.named(self.words[index], each.name) else ("", False)
            if index in after:
                plural = plural or self.words[each.last] in _EVERYDAY
                return each.name, not plural and not is_verb_or_adjective(self.question, index)
            if index in before:
                told = index == 0 or self.words[index - 1] in _DETERMINERS
                return each.name, not plural and told and self.words[index] not in _ADJECTIVES
        return "", False

    def _named(self, index: int, word: str, spaces: Sequence[str]) -> Named | Missing | None:
        prefix, plain = word.endswith(("…", "*")), _PORT.sub("", word.rstrip("…*"))
        if "/" in plain or ".svc" in plain:
            return self._path(plain, spaces)
        said = self.question.asks("logs") and not self.names.named(plain)  # what lines must say
        (kind, sure), quoted = self._kind_beside(index), plain in self.question.quoted_names and not said
        program = "" if quoted else program_nouns.program_named(self.question, index, kind, sure=sure)
        if not quoted and (index in self._known or plain in vocabulary().stop):
            objects = self._of_ordinary_word(index, plain, kind, spaces)
        else:
            objects = self._objects(plain, kind, spaces, prefix=prefix) if NAME.fullmatch(plain) else ()
            by_right = kind or self.question.asks("permission", "uses")
            bound = () if by_right else program_nouns.bound_to(self.names, objects, spaces)
            if bound:
                return Named(name=plain, objects=bound, match="part")
            if not objects and kind and not sure:  # "can month-closer jobs create": the kind is another word's
                objects = self.names.named(plain, "", spaces)
            noun = not quoted and program_nouns.is_noun(plain, self.question.written)
            told = bool(program) or noun or describes(self.question, index)
            if not objects and must_be_name(plain, quoted=quoted, sure=sure) and not told:
                return self._similar(plain, kind, spaces)
            free = not objects and index not in self._known and not self._qualifies(index)
            if free and not self.question.asks("images") and spaces:
                objects = tuple(each for each in self.names.named(plain, "", self._given) if each.kind != "Namespace")
                if (
                    objects
                    and not self._beside.issuperset(spaces)
                    and not grammar.is_apart(self.question, index, spaces)
                ):
                    return Missing(name=plain, kind=kind, namespace=spaces[0])
        if program and not objects:
            return self._of_program(program, kind or program_nouns.kind_of_word(plain.rpartition("-")[2]), spaces)
        return Named(name=plain, objects=objects) if objects else None

    def _of_ordinary_word(self, index: int, word: str, kind: str, spaces: Sequence[str]) -> tuple[ClusterObject, ...]:
        """Return the objects with the name of an ordinary word, if the sentence uses the word as a name."""
        if word in _DETERMINERS:
            return ()
        objects = self.names.named(word, kind if kind != "Pod" else "", spaces)
        if index not in self._known:
            return objects if kind or len(word) >= _LEAST_NAMED else ()
        here = [each for each in self.question.found if index in range(each.first, each.last + 1)]
        beside = {*self.words[index - 1 : index], *self.words[index + 1 : index + 2]} if index else {*self.words[1:2]}
        told = (
            kind
            or begins_clause(self.question, index, self._known)
            or grammar.is_bare(self.question, index)
            or (beside & _ACTED_ON and not {"how", "what", "of"} & beside)
        )
        served = [each for each in objects if is_of(each, kind) or each.kind in _SERVING]
        if not served or not told or any(each.last > each.first for each in here):
            return ()
        self.question = replace(self.question, found=tuple(each for each in self.question.found if each not in here))
        return tuple(served)

    def _of_program(self, word: str, kind: str, spaces: Sequence[str]) -> Named | Missing | None:
        """Return the objects that have a noun as a part of their name, or what is missing. None: it names too many."""
        objects = program_nouns.named_by_part(self.names, word, kind, spaces)
        if objects:
            few = len({each.name for each in objects}) <= _MOST_PARTS
            return Named(name=word, objects=objects, match="part") if few else None
        return None if any(word in space.split("-") for space in spaces) else self._similar(word, kind, spaces)

    def _qualifies(self, index: int) -> bool:
        """Return whether a plain word is part of an unknown plural: "504 from the booking pages"."""
        follower = self.words[index + 1] if index + 1 in self.question.clause(index) else ""
        unknown = index + 1 not in self._known and follower not in vocabulary().stop and not self.names.knows(follower)
        before = [each for each in self.words[:index] if each not in _DETERMINERS][-1:]
        return self.words[index].isalpha() and follower[-1:] == "s" and unknown and not _PREPOSITIONS.isdisjoint(before)

    def _objects(self, name: str, kind: str, spaces: Sequence[str], *, prefix: bool) -> tuple[ClusterObject, ...]:
        hosts = self.names.at_address(name) or self.names.of_host(name) if "." in name else ()
        if hosts or prefix:
            return hosts or self.names.begins(name, kind, spaces)
        if self.question.asks("permission") or not _MODALS.isdisjoint(self.words):
            accounts = {each.namespace for each in self.names.named(name, "ServiceAccount")}
            spaces = () if accounts and accounts.isdisjoint(spaces) else spaces  # it may get rights in another one
        exact = self.names.named(name, kind, spaces)
        if exact and kind in ("", exact[0].kind):
            return exact
        if kind == "Pod":  # "the checkout pod" is a pod of the workload `checkout`
            return self.names.named(name, "", spaces) or self.names.begins(name, "Pod", spaces)
        return exact or self.names.labelled(name, spaces)

    def _similar(self, name: str, kind: str, spaces: Sequence[str]) -> Named | Missing:
        owner = self.names.owner_of_vanished_pod(name, spaces) if kind in ("", "Pod") else ()
        if owner:
            return Named(name=name, objects=owner, match="gone")
        others = self.names.others(name, kind, spaces)  # "the claim orders-db" of a custom kind
        run = program_nouns.run_named(self.names, name, kind, spaces)
        run = run or (() if kind else self.names.with_image(name, spaces))
        if others or run:
            return Named(name=name, objects=others or run, match="exact" if others else "part")
        near = self._nearest(name, kind, spaces)
        if near and len(name) >= LEAST_TYPED and alike(name, near[0].name) >= SURE:
            same = self.names.named(near[0].name, kind, spaces)
            if len({each.name for each in near if alike(name, each.name) >= SURE}) == 1:
                return Named(name=name, objects=same, match="similar")
        place = spaces[0] if len(spaces) == 1 else ""
        return Missing(name=name, kind=kind, namespace=place, nearest=tuple(each.ref for each in near))

    def _nearest(self, name: str, kind: str, spaces: Sequence[str]) -> tuple[ClusterObject, ...]:
        """Return the objects with the most similar names. A pasted text has too many words to compare each of them."""
        self._compared += 1
        return self.names.nearest(name, kind, spaces) if self._compared <= _MOST_COMPARED else ()

    def _path(self, word: str, spaces: Sequence[str]) -> Named | Missing | None:
        """Find `deployment/checkout`, `shop/checkout`, `shop/deployment/checkout` or `cart.shop.svc`."""
        if ".svc" in word:
            objects = self.names.of_host(word)
            missing = Missing(name=word.partition(".svc")[0], kind="Service")
            return Named(name=word, objects=objects) if objects else missing
        parts = word.split("/")
        if "." in parts[0] and self.names.at_address(parts[0]):  # "shop.example/cart"
            return Named(name=word, objects=self.names.at_address(parts[0]))
        space, kind, name = "", "", parts[-1]
        if len(parts) >= 2:
            kind = program_nouns.kind_of_word(parts[-2].partition(".")[0])
            space = parts[0] if parts[0] in self.names.namespaces and (len(parts) > 2 or not kind) else ""
        if not (kind or space) or not NAME.fullmatch(name):
            return None
        places = (space,) if space else spaces
        objects = self._objects(name, kind, places, prefix=False)
        return Named(name=name, objects=objects) if objects else self._similar(name, kind, places)
