"""Start time, memory and call costs of pinfold beside other sandboxes.

Usage: bench.py PINFOLD HELPERS [--quick] [start|memory|calls ...]
Prints tables and writes everything to HELPERS/bench.json.
"""
import glob, json, os, shutil, signal, statistics, subprocess, sys, tempfile, time

PINFOLD, HELPERS = sys.argv[1:3]
QUICK = "--quick" in sys.argv
PARTS = [a for a in sys.argv[3:] if not a.startswith("-")] or ["start", "memory", "calls"]
PLATFORMS = ["seccomp", "ptrace"]


def runc_bundle(args):
    """A bundle whose tree holds one static program that does what args do; None where runc cannot."""
    d = tempfile.mkdtemp()
    os.mkdir(d + "/rootfs")
    shutil.copy(HELPERS + "/calls", d + "/rootfs/calls")
    if subprocess.run(["runc", "spec", "--bundle", d], capture_output=True).returncode:
        return None
    path = d + "/config.json"
    with open(path) as f:
        config = json.load(f)
    config["process"]["args"] = ["/calls", "sleep" if "sleep" in args[0] else "exit"]
    config["process"]["terminal"] = False
    config["mounts"] = [m for m in config["mounts"] if m["type"] != "cgroup"]
    with open(path, "w") as f:
        json.dump(config, f)
    return d


def sandboxes(args):
    """Name and command line of each sandbox that works here, for a guest command."""
    found = {"bare": args}
    if shutil.which("bwrap"):
        found["bwrap"] = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", *args]
    if shutil.which("runc"):
        bundle = runc_bundle(args)
        if bundle:
            found["runc"] = ["runc", "run", "--bundle", bundle, "pinfold-bench-%d" % os.getpid()]
    if shutil.which("proot"):
        found["proot"] = ["proot", *args]
    for p in PLATFORMS:
        found["pinfold" if p == "seccomp" else "pinfold-" + p] = [PINFOLD, "run", "--platform=" + p, "--", *args]
    return found


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))]


def works(command):
    try:
        return subprocess.run(command, capture_output=True, timeout=30, stdin=subprocess.DEVNULL).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def bench_start():
    commands = {n: c for n, c in sandboxes(["/bin/true"]).items() if works(c)}
    words = []
    for c in commands.values():
        words += c + ["@@"]
    rounds = 20 if QUICK else 100
    out = subprocess.run([HELPERS + "/spawn", str(rounds), *words[:-1]], capture_output=True, text=True, check=True).stdout
    times = {n: [] for n in commands}
    names = list(commands)
    for line in out.splitlines():
        index, ns, status = map(int, line.split())
        if status == 0:
            times[names[index]].append(ns / 1e6)
    result = {}
    base = statistics.median(times["bare"])
    print("\nStart to end of /bin/true, %d interleaved rounds, ms" % rounds)
    print("  %-16s %9s %9s %9s %9s" % ("", "median", "p99", "x bare", "x bwrap"))
    for n, t in times.items():
        if not t:
            continue
        median = statistics.median(t)
        row = {"median_ms": median, "p99_ms": percentile(t, 99), "x_bare": median / base, "runs": len(t)}
        if times.get("bwrap"):
            row["x_bwrap"] = median / statistics.median(times["bwrap"])
        result[n] = row
        print("  %-16s %9.2f %9.2f %9.2f %9s" % (n, median, row["p99_ms"], row["x_bare"], "%.2f" % row["x_bwrap"] if "x_bwrap" in row else ""))
    return result


def descendants(pid):
    children = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.split("/")[2]))
    out, queue = [], [pid]
    while queue:
        p = queue.pop()
        out.append(p)
        queue += children.get(p, [])
    return out


def memory_of(pid):
    """PSS and USS in KiB."""
    pss = uss = 0
    with open("/proc/%d/smaps_rollup" % pid) as f:
        for line in f:
            words = line.split()
            if words[0] == "Pss:":
                pss = int(words[1])
            if words[0] in ("Private_Clean:", "Private_Dirty:"):
                uss += int(words[1])
    return pss, uss


def cpu_ticks(pids):
    total = 0
    for p in pids:
        try:
            with open("/proc/%d/stat" % p) as f:
                fields = f.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total


def bench_memory():
    result = {}
    print("\nIdle sandbox (sleep), all its processes")
    print("  %-16s %9s %9s %9s %9s" % ("", "PSS KiB", "USS KiB", "procs", "CPU %"))
    for n, command in sandboxes(["/bin/sleep", "1000"]).items():
        if not shutil.which(command[0]):
            continue
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(1.5)
        try:
            pids = descendants(p.pid)
            if p.poll() is not None:
                continue
            before = cpu_ticks(pids)
            time.sleep(1 if QUICK else 5)
            used = (cpu_ticks(pids) - before) / os.sysconf("SC_CLK_TCK") / (1 if QUICK else 5) * 100
            sizes = [memory_of(i) for i in pids]
            row = {"pss_kib": sum(s[0] for s in sizes), "uss_kib": sum(s[1] for s in sizes), "processes": len(pids), "cpu_percent": used}
            result[n] = row
            print("  %-16s %9d %9d %9d %9.2f" % (n, row["pss_kib"], row["uss_kib"], row["processes"], used))
        except OSError as e:
            print("  %-16s %s" % (n, e))
        finally:
            for i in descendants(p.pid):
                try:
                    os.kill(i, signal.SIGKILL)
                except OSError:
                    pass
            p.wait()
            if n == "runc":
                subprocess.run(["runc", "delete", "-f", command[-1]], capture_output=True)
    return result


def bench_calls():
    columns = {"native": [HELPERS + "/calls"]}
    for p in PLATFORMS:
        columns[p] = [PINFOLD, "run", "--platform=" + p, "--", HELPERS + "/calls"]
    result = {}
    for name, command in columns.items():
        try:
            r = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired) as e:
            print("%s: %s" % (name, e))
            r = None
        if r is None or (r.returncode and not r.stdout):
            continue
        result[name] = {w[0]: float(w[1]) for w in (line.split() for line in r.stdout.splitlines()) if len(w) == 2}
    print("\nns per operation (times native)")
    print("  %-18s" % "" + "".join("%22s" % n for n in result))
    for op in result["native"]:
        cells = ""
        for n in result:
            v = result[n].get(op)
            cells += "%22s" % ("-" if v is None else "%.0f (%.1f)" % (v, v / max(result["native"][op], 1)))
        print("  %-18s%s" % (op, cells))
    return result


report = {"host": " ".join(os.uname()[:3]), "cpus": os.cpu_count(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
for part in PARTS:
    report[part] = {"start": bench_start, "memory": bench_memory, "calls": bench_calls}[part]()
with open(HELPERS + "/bench.json", "w") as f:
    json.dump(report, f, indent=1)
print("\nJSON: %s/bench.json" % HELPERS)
