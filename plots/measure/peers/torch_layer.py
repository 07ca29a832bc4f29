# SPDX-License-Identifier: MIT
"""Chapter 10c's layer in PyTorch, timed forward and backward, with the same columns.

  python3 torch_layer.py build/bin/10c_layer [--layer NAME,NAME] [--csv FILE]

The products are torch.nn.functional.grouped_mm, whose backward pass is two more; the rest is plain PyTorch, as it comes
(eager) and with torch.compile. The layer's sizes are what the program says of itself. Weights and their gradients are
bf16, as PyTorch has the one for the other.
"""

import argparse
import csv
import datetime
import json
import statistics
import subprocess
from pathlib import Path

import torch
import torch.nn.functional as functional

COLUMNS = ["layer", "launch", "launches", "us_median", "us_p10", "us_p90", "tflops", "bytes", "clock_mhz", "device", "commit", "date",
           "version"]
ROUNDS, WARM_UP, EACH = 12, 2, 5


def grouped_mm(a, b, ends):
    if hasattr(functional, "grouped_mm"):
        return functional.grouped_mm(a, b, offs=ends)
    return torch._grouped_mm(a, b, offs=ends)


def layer_of(tokens, token_of, row_of, ends, prob, w1, w2):
    """What a token's experts make of it: [tokens, hidden]. w1 [experts, 2 inner, hidden] has an expert's gates, then its ups."""
    x = tokens[token_of]
    gates, ups = grouped_mm(x, w1.transpose(1, 2), ends).chunk(2, dim=-1)
    unit = functional.silu(gates) * ups * prob[:, None]
    y = grouped_mm(unit.to(torch.bfloat16), w2.transpose(1, 2), ends)
    return y[row_of].sum(1)


def loss_of(target, scale, *operands):
    return scale / 2 * (layer_of(*operands).float() - target).square().sum()


def operands_of(layer, generator):
    """As chapter 10c draws them: a router of random logits, some experts more popular than others."""
    tokens, experts, top_k, hidden, inner = (layer[name] for name in ("tokens", "experts", "top_k", "hidden", "inner"))

    def normal(*sizes):
        return torch.randn(*sizes, device="cuda", generator=generator)

    best = (normal(tokens, experts) + normal(experts) / 2).topk(top_k)
    prob, order = best.values.softmax(1).flatten(), best.indices.flatten().argsort(stable=True)
    row_of = torch.empty_like(order)
    row_of[order] = torch.arange(len(order), device="cuda")
    ends = best.indices.flatten().bincount(minlength=experts).cumsum(0).to(torch.int32)
    weights = [(normal(*sizes) / sizes[-1] ** 0.5).to(torch.bfloat16).requires_grad_()
               for sizes in ((experts, 2 * inner, hidden), (experts, hidden, inner))]
    all_tokens = normal(tokens, hidden).to(torch.bfloat16).requires_grad_()
    return (normal(tokens, hidden), 2 / (tokens * hidden), all_tokens, order // top_k, row_of.view(tokens, top_k), ends,
            prob[order].requires_grad_(), *weights)


def timed(work):
    """Microseconds of `work`: the median, the 10th and the 90th percentile of rounds that launch it several times, so that the host
    is ahead of the device."""
    times = []
    for i in range(WARM_UP + ROUNDS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        for _ in range(EACH):
            work()
        end.record()
        torch.cuda.synchronize()
        if i >= WARM_UP:
            times.append(begin.elapsed_time(end) * 1000 / EACH)
    deciles = statistics.quantiles(times, n=10)
    return statistics.median(times), deciles[0], deciles[-1]


def kernels_of(work):
    """How many kernels and copies a call launches."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profile.events())


def rows_of(layer, how, function):
    operands = operands_of(layer, torch.Generator("cuda").manual_seed(1))
    parameters = [each for each in operands if isinstance(each, torch.Tensor) and each.requires_grad]

    def forward():
        with torch.no_grad():
            function(*operands)

    def both():
        for each in parameters:
            each.grad = None
        function(*operands).backward()

    device, version = torch.cuda.get_device_name(), f"PyTorch {torch.__version__}"
    flops = 6 * layer["tokens"] * layer["top_k"] * layer["hidden"] * layer["inner"]
    for name, work, more in (("forward", forward, 1), ("forward and backward", both, 3)):
        median, p10, p90 = timed(work)
        yield {"layer": layer["name"], "launch": f"PyTorch {how}: {name}", "launches": kernels_of(work),
               "us_median": f"{median:.1f}", "us_p10": f"{p10:.1f}", "us_p90": f"{p90:.1f}",
               "tflops": f"{flops * more / median / 1e6:.1f}", "device": device, "date": datetime.date.today().isoformat(),
               "version": version}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--layer", default="")
    parser.add_argument("--csv", type=Path)
    args = parser.parse_args()
    layers = json.loads(subprocess.run([args.program, "--describe"], capture_output=True, check=True).stdout)["layers"]
    wanted = args.layer.split(",") if args.layer else [layer["name"] for layer in layers]
    for layer in layers:
        if layer["name"] not in wanted:
            continue
        for how, function in (("eager", loss_of), ("compiled", torch.compile(loss_of))):
            try:
                found = list(rows_of(layer, how, function))
            except Exception as error:  # no memory, or nothing that compiles
                print(f"{layer['name']}, {how}: left out: {str(error).splitlines()[0]}", flush=True)
                continue
            finally:
                torch.cuda.empty_cache()
            for row in found:
                print(f"{row['layer']:9} {row['launch']:40} {row['us_median']:>10} us {row['tflops']:>6} TFLOP/s", flush=True)
            if args.csv:
                new = not args.csv.exists()
                with open(args.csv, "a", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    if new:
                        writer.writeheader()
                    writer.writerows(found)


if __name__ == "__main__":
    main()
