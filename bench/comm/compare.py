#!/usr/bin/env python3
"""Compares our all_reduce (f32 sums) with MPI_Allreduce and Gloo's allreduce, in one run.

Rows: case, threads (processes), ours and peer in microseconds, and ratio = peer / ours, all medians over rounds in
which everybody takes turns. The parts are:
  host     2 and 4 processes on this machine; the canonical reduction is compared with our own fastest
  crowd    8 processes compared with 2 that reduce as many bytes in all: ratio = throughput of 8 / throughput of 2
  network  2 and 4 emulated hosts; the peer is the wire: 2(N-1)/N of the bytes at 1 Gbit/s; with gloo also two ranks
           on each of two hosts
  encryption  2 emulated hosts: tcp, encrypted, compared with tcp in clear, in turns; ratio = clear time / encrypted time.
           How many cores rank 0 keeps busy in both cases is printed below the table (cores in --json)
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KIB, MIB = 1 << 10, 1 << 20


def parse(text):
    """{(case, bytes): seconds} from lines "CASE BYTES SECONDS"."""
    lines = (line.split() for line in text.splitlines())
    return {(case, int(size)): float(seconds) for case, size, seconds in lines}


def label(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def run_ranks(commands):
    """Starts one process per command; the first one's output counts."""
    started = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
    outputs = [p.communicate(timeout=170)[0] for p in started]
    if any(p.returncode for p in started):
        sys.exit("bench/run comm: a rank failed: " + " ".join(commands[0]))
    return parse(outputs[0])


def in_turns(measures, rounds):
    """The medians over rounds in which all measures take turns, so drift affects all alike."""
    taken = [{key: seconds for measure in measures for key, seconds in measure().items()} for _ in range(rounds)]
    return {key: statistics.median(times[key] for times in taken) for key in taken[0]}


class Bench:
    def __init__(self, options):
        self.options, self.rows = options, []
        self.rounds = 1 if options.quick else 3
        self.mpirun = ["mpirun", "--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])

    def program(self, name):
        return os.path.join(self.options.build, name)

    def ours(self, ranks, cases, sizes):
        address = f"bench-{os.getpid()}"
        return run_ranks([[self.program("artel_bench_comm"), "shm", str(r), str(ranks), address, cases,
                           *map(str, sizes)] for r in range(ranks)])

    def openmpi(self, ranks, sizes):
        return run_ranks([self.mpirun + ["-np", str(ranks), self.program("artel_bench_comm_mpi"), *map(str, sizes)]])

    def gloo(self, ranks, sizes):
        with tempfile.TemporaryDirectory() as store:
            return run_ranks([[self.program("artel_bench_comm_gloo"), str(r), str(ranks), store, *map(str, sizes)]
                              for r in range(ranks)])

    def add(self, case, ranks, ours, peer, peer_name):
        self.rows.append({"case": case, "threads": ranks, "ours": round(ours * 1e6, 2), "peer": round(peer * 1e6, 2),
                          "peer_name": peer_name, "unit": "us", "ratio": round(peer / ours, 3)})

    def host(self):
        sizes = [4 * KIB, MIB, 16 * MIB] if self.options.quick else [4 * KIB, 64 * KIB, MIB, 16 * MIB, 100 * MIB]
        for ranks in self.options.processes:
            times = in_turns([lambda: self.ours(ranks, "arena,heap,lanes", sizes), lambda: self.openmpi(ranks, sizes),
                              lambda: self.gloo(ranks, sizes)], self.rounds)
            for size in sizes:
                for memory in ("arena", "heap"):
                    for peer in ("OpenMPI", "Gloo"):
                        self.add(f"shm {memory} {label(size)}, {ranks} processes, {peer}", ranks,
                                 times[memory, size], times[peer.lower(), size], peer)
                self.add(f"shm canonical {label(size)}, {ranks} processes, our fastest", ranks,
                         times["lanes", size], times["arena", size], "shm arena")

    def crowd(self):
        for size in (MIB, 16 * MIB):
            times = in_turns([lambda: {n: self.ours(n, "arena", [8 // n * size])["arena", 8 // n * size]
                                       for n in (2, 8)}], self.rounds)
            self.add(f"shm arena {label(8 * size)} in all, throughput of 8 processes, 2 processes", 8, times[8],
                     times[2], "2 processes")

    def network(self):
        sizes = [16 * MIB] if self.options.quick else [16 * MIB, 64 * MIB]
        for hosts in self.options.hosts:
            for transport in self.options.transports:
                times = self.emulated(str(hosts), transport, "heap,lanes,native", sizes)
                if times is None:
                    print("bench/run comm: no network namespaces here, emulated hosts left out", file=sys.stderr)
                    return
                for size in sizes:
                    wire = 2 * (hosts - 1) / hosts * size * 8 / 1e9
                    for case, name in (("heap", ""), ("lanes", " canonical"), ("native", " library's own")):
                        self.add(f"{transport}{name} {label(size)}, {hosts} hosts at 1 Gbit/s, wire bound", hosts,
                                 times[case, size], wire, "wire bound")
        if "gloo" in self.options.transports:
            times = self.emulated("2x2", "gloo", "ring,hierarchical", sizes)
            for size in sizes:
                for algorithm in ("ring", "hierarchical"):
                    self.add(f"gloo {algorithm} {label(size)}, 2 hosts x 2 ranks at 1 Gbit/s, wire bound", 4,
                             times[algorithm, size], size * 8 / 1e9, "wire bound")

    def encryption(self):
        sizes = [16 * MIB] if self.options.quick else [MIB, 16 * MIB, 64 * MIB]
        taken = {"tcp": [], "tls": [], "gloo": []}
        for _ in range(self.rounds):
            for transport in taken:
                times = self.emulated("2", transport, "heap", sizes)
                if times is None:
                    print("bench/run comm: no network namespaces here, emulated hosts left out", file=sys.stderr)
                    return
                taken[transport].append(times)
        def median(transport, case, size):
            return statistics.median(times[case, size] for times in taken[transport])
        for size in sizes:
            for peer in ("tcp", "gloo"):
                self.add(f"tcp, encrypted {label(size)}, 2 hosts at 1 Gbit/s, {peer} in clear", 2,
                         median("tls", "heap", size), median(peer, "heap", size), f"{peer} in clear")
                self.rows[-1]["cores"] = median("tls", "heap.cores", size)
                self.rows[-1]["peer_cores"] = median(peer, "heap.cores", size)

    def emulated(self, hosts, transport, cases, sizes):
        script = os.path.join(ROOT, "bench", "comm", "emulated_hosts.sh")
        done = subprocess.run([script, hosts, transport, self.program("artel_bench_comm"), cases,
                               *map(str, sizes)], stdout=subprocess.PIPE, text=True)
        if done.returncode == 77:
            return None
        if done.returncode != 0:
            sys.exit(f"bench/run comm: {hosts} emulated hosts on {transport} failed")
        return parse(done.stdout)


def main():
    parts = ["host", "crowd", "network", "encryption"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object for each row instead of a table")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, one round")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="where the programs are")
    parser.add_argument("--only", choices=parts, nargs="+", default=parts, help="some of the parts")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4], help="of the part host")
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4], help="of the part network")
    parser.add_argument("--transports", choices=["gloo", "mpi"], nargs="+", default=["gloo", "mpi"], help="ditto")
    options = parser.parse_args()
    bench = Bench(options)
    for part in options.only:
        getattr(bench, part)()
    if options.json:
        for row in bench.rows:
            print(json.dumps(row))
        return
    print(f"{'case':<72} {'ours':>12} {'peer':>12}  {'ratio':>7}")
    for row in bench.rows:
        print(f"{row['case']:<72} {row['ours']:>9.1f} us {row['peer']:>9.1f} us  {row['ratio']:>7.2f}")
        if "cores" in row:
            print(f"    cores that rank 0 keeps busy: {row['cores']:.2f}, in clear {row['peer_cores']:.2f}")


if __name__ == "__main__":
    main()
