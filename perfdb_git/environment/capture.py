"""The environment of a run: its manifest, the passing facts beside it, and what is unknown."""

from __future__ import annotations

import dataclasses
import socket
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from perfdb_git.environment import nvidia_smi, rocm_smi
from perfdb_git.environment.accelerators import Accelerator, AcceleratorReport
from perfdb_git.environment.device_terms import DeviceTerm, term_of_processor, term_of_product
from perfdb_git.environment.libraries import python_libraries, toolkit_versions
from perfdb_git.environment.names import redactor_of_this_machine
from perfdb_git.environment.processor import Host, read_host
from perfdb_git.environment.sources import read_input, run_tool
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.codec import decode, encode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.redaction import Redactor
from perfdb_git.model.records import Manifest
from perfdb_git.model.values import JsonValue
from perfdb_git.model.vocabulary import Dimension, Vocabulary
from perfdb_git.operations.queries import canonical_term

MANIFEST_SCHEMA = "perfdb/manifest/v1"
_READERS = {
    nvidia_smi.COMMAND: nvidia_smi.read_nvidia_smi,
    rocm_smi.COMMAND: rocm_smi.read_rocm_smi,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """What to capture.

    Parameters
    ----------
    gpu_xml, rocm_json : tuple of Path
        Outputs of vendors' tools to read; without any the tools themselves are run.
    device, form_factor : str or None
        Terms to state; None takes what the tools' names tell.
    topology : str or None
        Text to state.
    runtimes : mapping
        Versions to state, by name.
    notes : tuple of str
        Facts to state.
    interpreter : str or None
        Python whose libraries are listed; None lists none.
    variables : mapping
        Environment variables of the run; those that limit threads are facts of it.
    """

    gpu_xml: tuple[Path, ...] = ()
    rocm_json: tuple[Path, ...] = ()
    device: str | None = None
    form_factor: str | None = None
    topology: str | None = None
    runtimes: Mapping[str, str | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    interpreter: str | None = sys.executable
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedEnvironment:
    """A manifest, the facts that are not identity, and why other facts are unknown."""

    manifest: Manifest
    observed: Mapping[str, JsonValue]
    unknown: Mapping[str, str]

    @property
    def content(self) -> bytes:
        """The manifest's canonical bytes."""
        return canonical_document(encode(self.manifest))

    @property
    def sha256(self) -> str:
        """The manifest's content address."""
        return sha256_hex(self.content)


def capture_environment(
    request: CaptureRequest,
    vocabulary: Vocabulary,
    *,
    redactor: Redactor | None = None,
    root: Path = Path("/"),
) -> CapturedEnvironment:
    """Ask this machine what it is; a tool that is absent makes facts unknown, not an error.

    Parameters
    ----------
    request : CaptureRequest
        What to read, and what to state.
    vocabulary : Vocabulary
        Whose terms devices and form factors are given in.
    redactor : Redactor or None
        None takes one that knows the present user and host.
    root : Path
        Where ``proc``, ``sys`` and ``etc`` are.

    Raises
    ------
    UsageError
        A file that cannot be read, or a term that the vocabulary does not have.
    InvalidInputError
        A file that is no output of its tool.
    """
    capture = _Capture(request, vocabulary, read_host(root))
    capture.read_accelerators()
    capture.read_software(root)
    return capture.result(redactor or redactor_of_this_machine())


class _Capture:
    """One capture: what the tools said, and what is still unknown."""

    def __init__(self, request: CaptureRequest, vocabulary: Vocabulary, host: Host) -> None:
        self._request = request
        self._dimensions = vocabulary.dimensions
        self._host = host
        self._reports: list[AcceleratorReport] = []
        self._reasons: dict[str, str] = {}
        self._missing: list[str] = []
        self._runtimes: dict[str, str | None] = {}
        self._is_processor = False

    def read_accelerators(self) -> None:
        """Read the named files, or run the vendors' tools."""
        files = (
            *((path, nvidia_smi.read_nvidia_smi) for path in self._request.gpu_xml),
            *((path, rocm_smi.read_rocm_smi) for path in self._request.rocm_json),
        )
        if files:
            self._reports = [read(read_input(path), document=path.name) for path, read in files]
            return
        for command, read in _READERS.items():
            output = run_tool(command)
            if output.content is None:
                self._missing.append(str(output.reason))
                continue
            try:
                self._reports.append(read(output.content, document=" ".join(command)))
            except InvalidInputError as error:
                self._missing.append(f"{command[0]}: {error.reason}")

    def read_software(self, root: Path) -> None:
        """Read versions of toolkits, drivers' interfaces and libraries."""
        for report in self._reports:
            self._runtimes |= report.runtimes
        self._runtimes |= toolkit_versions(root)
        if self._request.interpreter is not None:
            libraries, reason = python_libraries(self._request.interpreter)
            self._runtimes |= libraries
            if reason is not None:
                self._reasons["runtimes"] = reason
        self._runtimes |= self._request.runtimes

    def result(self, redactor: Redactor) -> CapturedEnvironment:
        """Put the facts together and take out what must not be stored."""
        manifest = _redacted_manifest(self._manifest(), redactor)
        return CapturedEnvironment(
            manifest=manifest,
            observed=_without_secrets(self._observed(), redactor),
            unknown=dict(self._unknown(manifest)),
        )

    def _manifest(self) -> Manifest:
        devices = [device for report in self._reports for device in report.devices]
        term, count, chosen = self._device(devices)
        shared = _Shared(chosen, self._reasons)
        host = self._host
        reports = [report for report in self._reports if report.devices]
        return Manifest(
            schema=MANIFEST_SCHEMA,
            device=None if term is None else term.device,
            device_count=count,
            form_factor=self._form_factor(term),
            driver=self._one("driver", [report.driver for report in reports]) if chosen else None,
            firmware=shared.of("firmware") if chosen else self._microcode(),
            runtimes=self._runtimes,
            kernel=host.kernel,
            operating_system=host.operating_system,
            processor=host.processor,
            clock_policy=shared.of("clock_policy") if chosen else self._host_clocks(),
            power_policy=shared.of("power_policy") if chosen else None,
            topology=self._request.topology or self._topology(chosen, reports),
            notes=tuple(sorted({*self._notes(devices, chosen), *self._request.notes})),
        )

    def _microcode(self) -> str | None:
        microcode = self._host.microcode
        return f"microcode {microcode}" if self._is_processor and microcode else None

    def _host_clocks(self) -> str | None:
        return self._host.clock_policy if self._is_processor else None

    def _device(
        self, devices: Sequence[Accelerator]
    ) -> tuple[DeviceTerm | None, int | None, Sequence[Accelerator]]:
        """Return the device's term, how many there are, and which of the accelerators it is."""
        dimension = self._dimensions["device"]
        processor = term_of_processor(self._host.processor_term, dimension)
        stated = self._stated_device(dimension)
        if not devices or (stated and processor and stated.device == processor.device):
            term = stated or processor
            if term is None:
                name = self._host.processor_term or "this processor"
                self._reasons["device"] = (
                    f"no accelerator was found ({'; '.join(self._missing)}), and the vocabulary "
                    f"has no device {name!r}"
                )
            self._is_processor = term is not None and term == processor
            return term, self._host.sockets if self._is_processor else None, ()
        terms = {device.product: self._product_term(device, dimension) for device in devices}
        if stated is not None and len(terms) > 1:
            chosen = [d for d in devices if (t := terms[d.product]) and t.device == stated.device]
        else:
            chosen = list(devices)
        products = {device.product for device in chosen}
        if len(products) != 1:
            self._reasons["device"] = "the machine has several kinds of accelerators: name one"
            return stated, None, ()
        product = products.pop()
        term = stated or terms[product]
        if term is None:
            self._reasons["device"] = f"no term of the vocabulary is known for {product!r}"
        elif stated is not None and (own := terms[product]) and own.device == stated.device:
            term = DeviceTerm(
                device=stated.device, form_factor=stated.form_factor or own.form_factor
            )
        return term, len(chosen), chosen

    def _stated_device(self, dimension: Dimension) -> DeviceTerm | None:
        text = self._request.device
        if text is None:
            return None
        shorthand = dimension.shorthands.get(text)
        if shorthand is not None:
            form_factor = shorthand.get("form_factor")
            return DeviceTerm(
                device=str(shorthand["device"]),
                form_factor=None if form_factor is None else str(form_factor),
            )
        return DeviceTerm(device=canonical_term("device", dimension, text), form_factor=None)

    def _product_term(self, device: Accelerator, dimension: Dimension) -> DeviceTerm | None:
        return None if device.product is None else term_of_product(device.product, dimension)

    def _form_factor(self, term: DeviceTerm | None) -> str | None:
        text = self._request.form_factor
        if text is None:
            return None if term is None else term.form_factor
        return canonical_term("form_factor", self._dimensions["form_factor"], text)

    def _topology(
        self, chosen: Sequence[Accelerator], reports: Sequence[AcceleratorReport]
    ) -> str | None:
        if not chosen:
            return self._host.topology if self._is_processor else None
        stated = self._one("topology", [report.topology for report in reports])
        if stated is None:
            self._reasons["topology"] = "the tools' output does not say how devices are linked"
        return stated

    def _one(self, name: str, values: Iterable[str | None]) -> str | None:
        found = set(values)
        if len(found) > 1:
            self._reasons[name] = "it differs between the files"
            return None
        return found.pop() if found else None

    def _notes(
        self, devices: Sequence[Accelerator], chosen: Sequence[Accelerator]
    ) -> Iterator[str]:
        for name, text in self._host.notes.items():
            yield f"{name}: {text}"
        for name, text in self._request.variables.items():
            if name.endswith("_NUM_THREADS") and text.isdigit():
                yield f"{name}: {text}"
        if not self._is_processor and self._host.clock_policy is not None:
            yield f"host clocks: {self._host.clock_policy}"
        if not self._is_processor and self._host.topology is not None:
            yield f"host topology: {self._host.topology}"
        for product, count in sorted(Counter(str(d.product) for d in devices).items()):
            yield f"accelerator: {count} x {product}"
        for name in sorted({name for device in chosen for name in device.notes}):
            values = {device.notes.get(name) for device in chosen}
            yield f"{name}: {' and '.join(sorted('unknown' if v is None else v for v in values))}"

    def _observed(self) -> dict[str, JsonValue]:
        devices = [d.observed for report in self._reports for d in report.devices]
        observed: dict[str, JsonValue] = {
            "captured_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            **self._host.observed,
        }
        for report in self._reports:
            observed |= report.observed
        if devices:
            observed["accelerators"] = [dict(device) for device in devices]
        return observed

    def _unknown(self, manifest: Manifest) -> Iterator[tuple[str, str]]:
        for name in ("runtimes", *_NULLABLE):
            if name == "runtimes":
                if name in self._reasons:
                    yield name, self._reasons[name]
            elif getattr(manifest, name) is None:
                fallback = self._host.reasons.get(name, "no tool of this machine states it")
                yield name, self._reasons.get(name, fallback)


_NULLABLE = tuple(
    item.name
    for item in dataclasses.fields(Manifest)
    if item.name not in ("schema", "runtimes", "notes")
)


@dataclass(frozen=True, slots=True)
class _Shared:
    """Facts that hold for every one of several devices."""

    devices: Sequence[Accelerator]
    reasons: dict[str, str]

    def of(self, name: str) -> str | None:
        values = {getattr(device, name) for device in self.devices}
        if len(values) > 1:
            self.reasons[name] = "it differs between the devices"
            return None
        value: str | None = values.pop()
        return value


def host_name() -> str:
    """Return this host's name, which is for the user's eyes and in no stored document."""
    return socket.gethostname()


def _redacted_manifest(manifest: Manifest, redactor: Redactor) -> Manifest:
    value = encode(manifest)
    assert isinstance(value, dict)
    # The schema's name, a device and a form factor are words of closed lists.
    closed = ("schema", "device", "form_factor")
    clean = {n: v if n in closed else _redacted(v, redactor) for n, v in value.items()}
    return decode(Manifest, clean, document="manifest")


def _without_secrets(observed: Mapping[str, JsonValue], redactor: Redactor) -> dict[str, JsonValue]:
    """Redact texts at any depth; the boot id, a UUID, is the one that is meant to be there."""
    return {
        name: value if name == "boot_id" else _redacted(value, redactor)
        for name, value in observed.items()
    }


def _redacted(value: JsonValue, redactor: Redactor) -> JsonValue:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, dict):
        return {redactor.text(key): _redacted(item, redactor) for key, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item, redactor) for item in value]
    return value
