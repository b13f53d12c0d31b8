"""Released JSON Schemas (2020-12), found by kind and version, and what a document breaks of them.

A schema file is ``<kind>.v<N>.schema.json``, an extension ``extensions/<name>.v<N>.schema.json``;
documents call them ``perfdb/<kind>/v<N>`` and ``perfdb/extension/<name>/v<N>``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.json_value import pointer_of
from perfdb_git.formats.strict_json import read_json

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

SchemaKey = tuple[str, int]

EXTENSION_PREFIX = "extension/"

_SCHEMA_ID = re.compile(r"perfdb/((?:extension/)?[a-z][a-z0-9-]*)/v([1-9][0-9]{0,5})")
_RELATIVE_REFERENCE = re.compile(rf"(?:\A|/)({_SCHEMA_ID.pattern})\Z")
_FILE_NAME = re.compile(r"([a-z][a-z0-9-]*)\.v([1-9][0-9]{0,5})\.schema\.json")


class Violation(NamedTuple):
    """One rule of a schema that a document breaks."""

    pointer: str
    message: str
    code: str


def parse_schema_id(schema_id: str, *, document: str = "schema id") -> SchemaKey:
    """Kind and version of ``perfdb/<kind>/v<N>``; an extension's kind is ``extension/<name>``.

    Raises
    ------
    InvalidInputError
        If the text has another form.
    """
    match = _SCHEMA_ID.fullmatch(schema_id)
    if match is None:
        raise InvalidInputError(
            f"schema {schema_id!r} does not have the form 'perfdb/<kind>/v<N>'",
            code="schema-id",
            document=document,
            pointer="/schema",
        )
    return match[1], int(match[2])


def schema_id_of(kind: str, version: int) -> str:
    """``perfdb/<kind>/v<N>``, as documents write it."""
    return f"perfdb/{kind}/v{version}"


def default_root() -> Traversable:
    """Folder of the schemas: inside the installed package, else that of the checkout."""
    import perfdb_git

    # Not through importlib.resources: it costs start-up time, and the package is never zipped
    # (its dependencies cannot be).
    package = Path(perfdb_git.__file__).parent
    installed = package / "data" / "schemas"
    return installed if installed.is_dir() else package.parent / "schemas"


class SchemaStore:
    """The schemas of one folder, each read and compiled at most once.

    Parameters
    ----------
    root : Path (or another Traversable) or None
        The folder; None takes the package's own.
    """

    def __init__(self, root: Traversable | None = None) -> None:
        self._root = default_root() if root is None else root

    @functools.cached_property
    def _files(self) -> Mapping[SchemaKey, Traversable]:
        folders = (("", self._root), (EXTENSION_PREFIX, self._root.joinpath("extensions")))
        found: dict[SchemaKey, Traversable] = {}
        for prefix, folder in folders:
            if not folder.is_dir():
                continue
            for entry in folder.iterdir():
                match = _FILE_NAME.fullmatch(entry.name)
                if match is not None:
                    found[prefix + match[1], int(match[2])] = entry
        return dict(sorted(found.items()))

    @functools.cached_property
    def _validators(self) -> dict[SchemaKey, Draft202012Validator]:
        return {}

    def kinds(self) -> tuple[str, ...]:
        """All kinds that have a schema, sorted."""
        return tuple(dict.fromkeys(kind for kind, _ in self._files))

    def known_versions(self, kind: str) -> tuple[int, ...]:
        """Released versions of a kind, ascending; empty for an unknown kind."""
        return tuple(version for known, version in self._files if known == kind)

    def file_names(self) -> tuple[str, ...]:
        """Paths of all schema files, relative to the folder, sorted."""
        return tuple(sorted(_file_name(*key) for key in self._files))

    def schema_bytes(self, kind: str, version: int) -> bytes:
        """Bytes of the released schema file.

        Raises
        ------
        InvalidInputError
            If there is no such schema.
        """
        self._require(kind, version, document=schema_id_of(kind, version))
        return self._files[kind, version].read_bytes()

    def load_schema(self, kind: str, version: int) -> dict[str, Any]:
        """The schema, as a fresh value at each call.

        Raises
        ------
        InvalidInputError
            If there is no such schema, or its file is not a strict JSON object, or it is an
            extension schema with a keyword that is forbidden there.
        """
        name = f"schemas/{_file_name(kind, version)}"
        schema = read_json(self.schema_bytes(kind, version), document=name)
        if not isinstance(schema, dict):
            raise InvalidInputError(
                "a schema is a JSON object", code="schema-invalid", document=name, pointer=""
            )
        if kind.startswith(EXTENSION_PREFIX):
            _refuse_regular_expressions(schema, name)
        return schema

    def validate(
        self,
        value: object,
        *,
        document: str,
        expected_kind: str | None = None,
        default: SchemaKey | None = None,
    ) -> None:
        """Judge a document by the schema that it names.

        Parameters
        ----------
        value : JSON value
            As a strict reader gave it.
        document : str
            Its name, for messages.
        expected_kind : str or None
            Kind that the document must be of.
        default : (str, int) or None
            Kind and version for a document which may leave ``schema`` out.

        Raises
        ------
        InvalidInputError
            With the pointer of the most relevant violation.
        """
        from jsonschema.exceptions import best_match

        key = self._select(value, document, expected_kind, default)
        error = best_match(self._errors(key, value, document))
        if error is not None:
            violation = _violation(error)
            raise InvalidInputError(
                violation.message,
                code=violation.code,
                document=document,
                pointer=violation.pointer,
            )

    def iter_violations(
        self,
        value: object,
        *,
        document: str,
        expected_kind: str | None = None,
        default: SchemaKey | None = None,
    ) -> list[Violation]:
        """Every violation of the schema that a document names, in document order.

        Parameters are those of `validate`; a document without a usable ``schema`` gives one
        violation that says so.

        Raises
        ------
        InvalidInputError
            If the schema itself is at fault.
        """
        try:
            key = self._select(value, document, expected_kind, default)
        except InvalidInputError as error:
            return [Violation(error.pointer or "", error.reason, error.code)]
        errors = sorted(
            self._errors(key, value, document),
            key=lambda error: [(isinstance(p, str), p) for p in error.absolute_path],
        )
        # One `required` gives an error for each missing key; here one names them all.
        return list(dict.fromkeys(map(_violation, errors)))

    def check_schemas(self) -> list[tuple[str, Violation]]:
        """Faults of the schema files themselves, each with its file name."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError

        faults: list[tuple[str, Violation]] = []
        for kind, version in self._files:
            name = _file_name(kind, version)
            try:
                Draft202012Validator.check_schema(self.load_schema(kind, version))
            except InvalidInputError as error:
                faults.append((name, Violation(error.pointer or "", error.reason, error.code)))
            except SchemaError as error:
                pointer = pointer_of(error.absolute_path)
                faults.append((name, Violation(pointer, error.message, "schema-invalid")))
        return faults

    def _select(
        self,
        value: object,
        document: str,
        expected_kind: str | None,
        default: SchemaKey | None,
    ) -> SchemaKey:
        if not isinstance(value, dict):
            raise InvalidInputError(
                "the document must be an object", code="wrong-type", document=document, pointer=""
            )
        schema_id = value.get("schema")
        if "schema" not in value and default is not None:
            kind, version = default
        elif isinstance(schema_id, str):
            kind, version = parse_schema_id(schema_id, document=document)
        else:
            raise InvalidInputError(
                "the document does not name its schema",
                code="schema-missing",
                document=document,
                pointer="/schema",
                remedy="add 'schema': 'perfdb/<kind>/v<N>'",
            )
        if expected_kind is not None and kind != expected_kind:
            raise InvalidInputError(
                f"expected a document of kind {expected_kind!r}, found {kind!r}",
                code="wrong-kind",
                document=document,
                pointer="/schema",
            )
        self._require(kind, version, document=document)
        return kind, version

    def _require(self, kind: str, version: int, *, document: str) -> None:
        if (kind, version) in self._files:
            return
        versions = self.known_versions(kind)

        def fail(message: str, code: str, remedy: str | None = None) -> NoReturn:
            raise InvalidInputError(
                message, code=code, document=document, pointer="/schema", remedy=remedy
            )

        if not versions:
            fail(f"unknown kind {kind!r}; known: {', '.join(self.kinds())}", "unknown-kind")
        if version > versions[-1]:
            fail(
                f"needs a newer perfdb: this one reads {kind} v{versions[-1]} and older, "
                f"the document is v{version}",
                "unknown-version",
                "pip install --upgrade perfdb-git",
            )
        fail(f"{kind} v{version} was never released", "unknown-version")

    def _errors(self, key: SchemaKey, value: object, document: str) -> Iterator[Any]:
        from referencing.exceptions import Unresolvable

        try:
            yield from self._validator(key).iter_errors(value)
        except Unresolvable as error:
            raise InvalidInputError(
                f"the schema of {document} refers to {error.ref!r}, which is no schema of "
                "this folder; nothing is fetched",
                code="schema-reference",
                document=f"schemas/{_file_name(*key)}",
            ) from error

    def _validator(self, key: SchemaKey) -> Draft202012Validator:
        from jsonschema import Draft202012Validator

        if key not in self._validators:
            self._validators[key] = Draft202012Validator(
                self.load_schema(*key), registry=self._registry, format_checker=None
            )
        return self._validators[key]

    @functools.cached_property
    def _registry(self) -> Registry[Any]:
        from referencing import Registry

        return Registry(retrieve=self._retrieve)  # type: ignore[call-arg]  # attrs, unseen by mypy

    def _retrieve(self, uri: str) -> Resource[Any]:
        """Schema of this folder by its id; anything else is not there, and never fetched."""
        from referencing.exceptions import NoSuchResource
        from referencing.jsonschema import DRAFT202012

        # A relative `$ref` arrives joined to a relative `$id`: perfdb/box/perfdb/lid/v2.
        relative = None if ":" in uri else _RELATIVE_REFERENCE.search(uri)
        wanted = uri if relative is None else relative[1]
        for key in self._files:
            if wanted in (schema_id_of(*key), self._declared_ids[key]):
                return DRAFT202012.create_resource(self.load_schema(*key))
        raise NoSuchResource(ref=uri)  # type: ignore[call-arg]  # attrs, unseen by mypy

    @functools.cached_property
    def _declared_ids(self) -> Mapping[SchemaKey, str | None]:
        return {key: self.load_schema(*key).get("$id") for key in self._files}


def _file_name(kind: str, version: int) -> str:
    folder = "extensions/" if kind.startswith(EXTENSION_PREFIX) else ""
    return f"{folder}{kind.removeprefix(EXTENSION_PREFIX)}.v{version}.schema.json"


def _refuse_regular_expressions(schema: object, document: str, *path: str | int) -> None:
    """Refuse `pattern` and `patternProperties`: an expression of a stranger can take for ever.

    At any place, since a `$ref` can make a schema of any place; only a property that is called
    ``pattern`` and described by an object passes.
    """
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            _refuse_regular_expressions(item, document, *path, index)
    elif isinstance(schema, dict):
        for key, item in schema.items():
            if key == "patternProperties" or (key == "pattern" and isinstance(item, str)):
                raise InvalidInputError(
                    f"an extension schema may not use {key!r}",
                    code="schema-regular-expression",
                    document=document,
                    pointer=pointer_of([*path, key]),
                )
            _refuse_regular_expressions(item, document, *path, key)


def _violation(error: Any) -> Violation:
    # Late, as it is of use only where jsonschema was.
    from perfdb_git.formats._violation_text import describe

    return Violation(pointer_of(error.absolute_path), *describe(error))
