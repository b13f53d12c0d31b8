"""Versions of the libraries that a Python program would load."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfdb_git.environment.accelerators import stated
from perfdb_git.environment.sources import read_fact, run_tool
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.strict_json import read_json

# Asked of the interpreter that runs the benchmark, which need not be this one.
_QUESTION = """
import json, platform
from importlib import metadata
names = {
    "numpy": "numpy", "scipy": "scipy", "torch": "pytorch", "triton": "triton", "jax": "jax",
    "jaxlib": "jaxlib", "tensorflow": "tensorflow", "cupy-cuda12x": "cupy", "numba": "numba",
    "vllm": "vllm", "sglang": "sglang", "flash-attn": "flash_attention",
    "tensorrt": "tensorrt", "tensorrt-llm": "trtllm", "onnxruntime": "onnxruntime",
    "nvidia-nccl-cu12": "nccl", "nvidia-nccl-cu13": "nccl",
    "nvidia-cuda-runtime-cu12": "cuda_runtime", "nvidia-cublas-cu12": "cublas",
    "nvidia-cudnn-cu12": "cudnn", "mpi4py": "mpi4py",
}
found = {"python": platform.python_implementation() + " " + platform.python_version()}
libc = " ".join(platform.libc_ver()).strip()
if libc:
    found["libc"] = libc
for package, name in names.items():
    try:
        found[name] = metadata.version(package)
    except metadata.PackageNotFoundError:
        pass
if "numpy" in found:
    try:
        import numpy
        blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        found["numpy_blas"] = blas["name"] + " " + blas["version"]
    except (ImportError, KeyError, TypeError):
        pass
print(json.dumps(found))
"""


def python_libraries(interpreter: str) -> tuple[dict[str, str | None], str | None]:
    """Return versions by name, and why there are none where that is so.

    Parameters
    ----------
    interpreter : str
        A Python program, by name or path.
    """
    output = run_tool((interpreter, "-c", _QUESTION))
    if output.content is None:
        return {}, output.reason
    try:
        value = read_json(output.content, document=interpreter)
    except InvalidInputError:
        return {}, f"{interpreter} printed something else than versions"
    if not isinstance(value, dict):
        return {}, f"{interpreter} printed something else than versions"
    return {name: stated(text) for name, text in value.items() if isinstance(text, str)}, None


def toolkit_versions(root: Path = Path("/")) -> Mapping[str, str]:
    """Return versions of CUDA and ROCm toolkits that stand where their installers put them."""
    found: dict[str, str] = {}
    rocm = stated(read_fact(root / "opt/rocm/.info/version"))
    if rocm is not None:
        found["rocm"] = rocm
    text = read_fact(root / "usr/local/cuda/version.json")
    if text is not None:
        try:
            value = read_json(text.encode(), document="usr/local/cuda/version.json")
        except InvalidInputError:
            return found
        cuda = value.get("cuda") if isinstance(value, dict) else None
        version = cuda.get("version") if isinstance(cuda, dict) else None
        if isinstance(version, str):
            found["cuda_toolkit"] = version
    return found
