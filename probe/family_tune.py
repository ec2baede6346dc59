"""Every way of some products, timed: where packed operands lose, and whether estimates rank."""
import csv, sys, time
from types import SimpleNamespace
import argand.nvrtc as nvrtc
from argand import PRECISIONS, tile_division, tuning
from argand.cuda_arrays import Layout
from argand.device import gpu
from argand.gemm import gemm_problem
from argand.gemm_choice import GemmSizes, OperandTraits, candidates, estimate
import argand.cuda_launch as cl
import argand.tune as T

dev = gpu(0); arch = dev.require_arch()
TENSOR = ["tf32", "3xtf32", "3xfp16", "fp16", "bf16"]
BATCH = (256, 64, 4096, 64)
cases = []
for p in TENSOR:
    cases += [(BATCH, p, "complex", "complex", 128), (BATCH, p, "complex", "packed", 128), (BATCH, p, "packed", "complex", 128)]
    for s in ((1, 256, 256, 256), (1, 512, 512, 512)):
        for share in (128, 256, 512) if s[1] == 256 else (128, 512):
            cases += [(s, p, "complex", "packed", share)]
            if p in ("fp16", "bf16"):
                cases += [(s, p, p, p, share)]
        cases += [(s, p, "complex", "complex", 128)]
for p in ("fp16", "3xfp16"):
    cases += [((256, 256, 4096, 256), p, "complex", "complex", 128), ((256, 256, 4096, 256), p, "complex", "packed", 128)]
cases += [((256, 256, 4096, 256), "tf32", "complex", "packed", 128)]

def forms(s, p, fa, fb):
    b, m, n, k = s
    item = lambda f: 4 if f in ("fp16", "bf16") else 8
    a = cl.OperandForm(None if fa == "packed" else Layout(m, k, k, 1, m * k * (b > 1), item(fa), 32), item(fa) == 4, batched=b > 1)
    bb = cl.OperandForm(None if fb == "packed" else Layout(n, k, 1, n, n * k * (b > 1), item(fb), 32), item(fb) == 4, batched=b > 1)
    return a, bb

jobs = {}
class Fake:
    kernel = SimpleNamespace(ptr=1)
    def __getattr__(self, name): return lambda *a, **k: 264
def record(source, target, *rest, **more):
    jobs[source, target] = None
    return Fake()
real = nvrtc.load
nvrtc.load = record
for s, p, fa, fb, share in cases:
    tile_division._LEAST_SHARE = share
    row = PRECISIONS[p]; a, b = forms(s, p, fa, fb); sz = GemmSizes(*s)
    problem = gemm_problem((s[0], s[1], s[3]), (s[0], s[3], s[2]), precision=row)
    for c in candidates(row, arch, sz, a.traits, b.traits):
        try: cl.GemmLaunch(problem, a, b, None, Layout(s[1], s[2], s[2], 1, s[1] * s[2], 8, 32), c, dev)
        except Exception as e: print("no job", p, c.name, e)
nvrtc.load = real
t = time.time(); nvrtc.compile_all(list(jobs)); print(len(jobs), "kernels in", round(time.time() - t, 1), "s", flush=True)
out = csv.writer(open(sys.argv[1], "w"))
out.writerow(["shape", "precision", "a", "b", "share", "us", "estimate", "way"])
for s, p, fa, fb, share in cases:
    tile_division._LEAST_SHARE = share
    cl._prepared.cache_clear(); tuning.TABLE.changed()
    row = PRECISIONS[p]; a, b = forms(s, p, fa, fb); sz = GemmSizes(*s)
    try:
        found = T.tune(s[:1] * (s[0] > 1) + (s[1], s[3]), s[:1] * (s[0] > 1) + (s[3], s[2]), precision=p, a_format=fa, b_format=fb)
    except Exception as e:
        print("failed", s, p, fa, fb, type(e).__name__, str(e)[:200], flush=True); continue
    for c, us in found:
        out.writerow(["x".join(map(str, s)), p, fa, fb, share, round(us, 2), round(1e6 * estimate(c, row, dev.cores, sz, a.traits, b.traits), 1), c.name])
    best = min(candidates(row, arch, sz, a.traits, b.traits), key=lambda c: estimate(c, row, dev.cores, sz, a.traits, b.traits))
    taken = dict(found)[best]
    print("x".join(map(str, s)), p, fa, fb, share, "best", round(found[0][1], 1), found[0][0].name, "| taken", round(taken, 1), best.name, flush=True)
print("done", round(time.time() - t, 1))
