#!/usr/bin/env python3
"""Compares our all_reduce (f32 sums) with MPI_Allreduce and Gloo's allreduce, in one run.

Rows: case, threads (processes), ours and peer in microseconds, and ratio = peer / ours. On emulated
hosts the peer is the wire: the time that 2(N-1)/N of the bytes take at 1 Gbit/s.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KIB, MIB = 1 << 10, 1 << 20


def parse(text):
    return {int(size): float(seconds) for size, seconds in (line.split() for line in text.splitlines())}


def run_ranks(commands):
    """Starts one process a command; the first one's output counts."""
    started = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
    outputs = [p.communicate(timeout=170)[0] for p in started]
    if any(p.returncode for p in started):
        sys.exit("bench/run comm: a rank failed: " + " ".join(commands[0]))
    return parse(outputs[0])


class Bench:
    def __init__(self, build, quick):
        self.build, self.quick, self.rows = build, quick, []
        self.mpirun = ["mpirun", "--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])

    def program(self, name):
        return os.path.join(self.build, name)

    def ours(self, ranks, memory, sizes, transport="shm"):
        address = f"bench-{os.getpid()}"
        return run_ranks([[self.program("artel_bench_comm"), transport, str(r), str(ranks), address, memory,
                           "automatic", *map(str, sizes)] for r in range(ranks)])

    def openmpi(self, ranks, sizes):
        return run_ranks([self.mpirun + ["-np", str(ranks), self.program("artel_bench_comm_mpi"), *map(str, sizes)]])

    def gloo(self, ranks, sizes):
        with tempfile.TemporaryDirectory() as store:
            return run_ranks([[self.program("artel_bench_comm_gloo"), str(r), str(ranks), store, *map(str, sizes)]
                              for r in range(ranks)])

    def add(self, case, ranks, ours, peer, peer_name):
        self.rows.append({"case": case, "threads": ranks, "ours": round(ours * 1e6, 2), "peer": round(peer * 1e6, 2),
                          "peer_name": peer_name, "unit": "us", "ratio": round(peer / ours, 3)})

    def interleaved(self, measures, repeats):
        """Medians over rounds in which all take turns, so that drift hits all alike."""
        rounds = [{name: measure() for name, measure in measures.items()} for _ in range(repeats)]
        return {name: {size: statistics.median(r[name][size] for r in rounds) for size in rounds[0][name]}
                for name in measures}

    def one_host(self):
        sizes = [4 * KIB, MIB, 16 * MIB] if self.quick else [4 * KIB, 64 * KIB, MIB, 16 * MIB, 100 * MIB]
        for ranks in (2, 4):
            times = self.interleaved({
                "arena": lambda: self.ours(ranks, "arena", sizes),
                "heap": lambda: self.ours(ranks, "heap", sizes),
                "lanes": lambda: self.ours(ranks, "lanes", sizes),
                "openmpi": lambda: self.openmpi(ranks, sizes),
                "gloo": lambda: self.gloo(ranks, sizes),
            }, 1 if self.quick else 3)
            for size in sizes:
                label = f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"
                self.add(f"shm arena {label}, {ranks} processes, OpenMPI", ranks, times["arena"][size],
                         times["openmpi"][size], "OpenMPI")
                self.add(f"shm arena {label}, {ranks} processes, Gloo", ranks, times["arena"][size],
                         times["gloo"][size], "Gloo")
                self.add(f"shm heap {label}, {ranks} processes, OpenMPI", ranks, times["heap"][size],
                         times["openmpi"][size], "OpenMPI")
                if size >= MIB:
                    self.add(f"shm canonical {label}, {ranks} processes, our fastest", ranks, times["lanes"][size],
                             times["arena"][size], "shm arena")
        # Waiting ranks sleep: the bus throughput of 8 processes on the same cores against that of 2.
        two, eight = (self.ours(n, "arena", [16 * MIB])[16 * MIB] for n in (2, 8))
        bus = lambda n: 2 * (n - 1) / n
        self.add("shm arena 16 MiB, throughput of 8 processes against 2", 8, eight / bus(8), two / bus(2), "2 processes")

    def emulated_hosts(self):
        script = os.path.join(ROOT, "bench", "comm", "emulated_hosts.sh")
        sizes = [16 * MIB] if self.quick else [16 * MIB, 64 * MIB]
        for hosts in (2, 4):
            for transport in ("gloo", "mpi"):
                done = subprocess.run([script, str(hosts), transport, self.program("artel_bench_comm"), *map(str, sizes)],
                                      stdout=subprocess.PIPE, text=True)
                if done.returncode == 77:
                    print("bench/run comm: no network namespaces here, emulated hosts left out", file=sys.stderr)
                    return
                if done.returncode != 0:
                    sys.exit(f"bench/run comm: {hosts} emulated hosts on {transport} failed")
                for size, seconds in parse(done.stdout).items():
                    wire = 2 * (hosts - 1) / hosts * size * 8 / 1e9
                    self.add(f"{transport} {size // MIB} MiB, {hosts} hosts at 1 Gbit/s", hosts, seconds, wire,
                             "wire bound")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="rows as JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, one round")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="where the programs are")
    parser.add_argument("--only", choices=["host", "network"], help="one part")
    options = parser.parse_args()
    bench = Bench(options.build, options.quick)
    if options.only != "network":
        bench.one_host()
    if options.only != "host":
        bench.emulated_hosts()
    if options.json:
        print(json.dumps(bench.rows, indent=1))
        return
    print(f"{'case':<56} {'ours':>12} {'peer':>12}  {'ratio':>7}  peer")
    for row in bench.rows:
        print(f"{row['case']:<56} {row['ours']:>9.1f} us {row['peer']:>9.1f} us  {row['ratio']:>7.2f}  {row['peer_name']}")


if __name__ == "__main__":
    main()
