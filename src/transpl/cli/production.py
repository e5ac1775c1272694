"""The commands that take a model to production: `transpl export` and `transpl serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transpl._utils.errors import check_choice, require_extra
from transpl.cli.options import AsJson, Device, Threads, log, open_model, print_json

_MEGABYTE = 1 << 20

ModelArgument = Annotated[Path, typer.Argument(help="Folder written by adapt or demo, or by TransPL.save.")]


def export(
    model: ModelArgument,
    out: Annotated[Path, typer.Option(help="Folder for numpy, file for onnx.")],
    to: Annotated[str, typer.Option(help="numpy: a folder that needs only numpy; onnx: one file.")] = "numpy",
    window: Annotated[
        int | None, typer.Option(min=2, help="Length of the windows in samples. Default: as the model's recordings.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a model so that it runs without this package: as a folder for numpy alone, or as one ONNX file.

    The export labels each window by itself. Voting by groups, smoothing over time, adapting and explaining stay here.
    """
    check_choice("--to", to, ("numpy", "onnx"))
    if to == "onnx":
        require_extra("transpl export --to onnx", "onnx", "onnx")
    from transpl.jobs import export as exports

    fitted, reading = open_model(model, None, "cpu")
    length = reading.get("window") if window is None else window
    write = exports.export_onnx if to == "onnx" else exports.export_numpy
    check = write(fitted, out, window=length, X=exports.windows_to_check(model))
    log("not checked: onnxruntime is not installed" if check is None else check.sentence())
    if as_json:
        print_json({"written": str(out), "check": None if check is None else check._asdict()})
    else:
        typer.echo(f"wrote {out}")


def serve(
    model: ModelArgument,
    host: Annotated[str, typer.Option(help="Address to listen on. 0.0.0.0 is every network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 chooses a free one.")] = 8000,
    at_once: Annotated[int, typer.Option(min=1, help="Requests computed at the same time.")] = 2,
    waiting: Annotated[int, typer.Option(min=0, help="Requests that may wait; more are refused with 503.")] = 32,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds per request.")] = 30.0,
    body_limit: Annotated[int, typer.Option(min=1, help="Megabytes per request.")] = 16,
    threads: Threads = None,
    device: Device = "auto",
) -> None:
    """Answer HTTP requests: POST /predict (JSON or csv), GET /health, /model and /metrics (Prometheus).

    SIGTERM and Ctrl-C finish the requests that have begun. There is no encryption and no login: put a proxy before it.
    """
    require_extra("transpl serve", "serve", "starlette", "uvicorn")
    from transpl.jobs import server

    fitted, reading = open_model(model, threads, device)
    limits = server.Limits(at_once, waiting, timeout, body_limit * _MEGABYTE)
    server.serve(server.ModelServer(fitted, reading, limits), host, port, log)
