"""Terminal cases for terminal.sh: pinfold below a pseudo-terminal, as TAP.

Usage: pty_cases.py PINFOLD. Every case gets a fresh terminal; `native` cases run the same talk with the
bare program first, so that a talk which is wrong itself is seen as such.
"""
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

PINFOLD = sys.argv[1]
number = failures = 0


class Terminal:
    """A program below a pty; expect() waits for a pattern in what it prints."""

    def __init__(self, argv, rows=24, cols=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "dumb"
            os.environ["PS1"] = "$ "
            os.execvp(argv[0], argv)
        self.resize(rows, cols)
        self.text = ""

    def resize(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def send(self, s):
        os.write(self.fd, s.encode())

    def expect(self, pattern, seconds=15):
        end = time.monotonic() + seconds
        while True:
            m = re.search(pattern, self.text)
            if m:
                self.text = self.text[m.end():]
                return m
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError("no %r in %r" % (pattern, self.text[-300:]))
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                data = b""
            if not data:
                raise AssertionError("ended without %r: %r" % (pattern, self.text[-300:]))
            self.text += data.decode(errors="replace")

    def status(self, seconds=15):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 4096)
                except OSError:
                    pass
        raise AssertionError("did not end")

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def case(name, talk, argv, **size):
    global number, failures
    for where, prefix in (("native", []), ("inside", [PINFOLD, "run", "--"])):
        t = Terminal(prefix + argv, **size)
        try:
            talk(t)
        except (AssertionError, OSError) as e:
            number += 1
            failures += 1
            print("# %s: %s" % (where, e))
            print("not ok %d - %s" % (number, name))
            return
        finally:
            t.close()
    number += 1
    print("ok %d - %s" % (number, name))


def is_tty(t):
    t.expect("tty tty tty")
    assert t.status() == 0


case("the three streams are a terminal", is_tty,
     ["sh", "-c", "for i in 0 1 2; do test -t $i && printf 'tty '; done; echo"])


def size(t):
    t.send("\n")
    t.expect("31 97")
    t.resize(40, 120)
    t.expect("winch")
    t.expect("40 120")
    assert t.status() == 0


case("window size and SIGWINCH", size,
     ["bash", "-c", "trap 'echo winch; stty size; exit 0' WINCH; read x; stty size; while :; do sleep 0.1; done"],
     rows=31, cols=97)


def interrupt(t):
    t.expect("ready")
    t.send("\x03")
    t.expect("got int")
    assert t.status() == 5


case("Ctrl-C reaches the command", interrupt,
     ["sh", "-c", "trap 'echo got int; exit 5' INT; echo ready; while :; do sleep 0.1; done"])


def interrupt_kills(t):
    t.expect("ready")
    t.send("\x03")
    assert t.status() in (-signal.SIGINT, 128 + signal.SIGINT)


case("Ctrl-C ends a command without a handler", interrupt_kills, ["sh", "-c", "echo ready; exec sleep 100"])


def quit_key(t):
    t.expect("ready")
    t.send("\x1c")
    assert t.status() in (-signal.SIGQUIT, 128 + signal.SIGQUIT)


case("Ctrl-\\ too", quit_key, ["sh", "-c", "ulimit -c 0; echo ready; exec sleep 100"])


def shell_lines(t):
    t.expect(r"[$#] ")
    t.send("echo one$((1+1))\n")
    t.expect("one2")
    t.expect(r"[$#] ")
    t.send("sleep 100\n")
    time.sleep(0.5)
    t.send("\x03")
    t.expect(r"[$#] ")
    t.send("echo status=$?\n")
    t.expect("status=130")
    t.send("exit 3\n")
    assert t.status() == 3


case("interactive shell, Ctrl-C of its child", shell_lines, ["bash", "--norc", "--noprofile", "-i"])


def job_control(t):
    t.expect(r"[$#] ")
    t.send("sleep 77\n")
    time.sleep(0.5)
    t.send("\x1a")
    t.expect("Stopped")
    t.send("jobs\n")
    t.expect("sleep 77")
    t.send("bg\n")
    t.expect("sleep 77 &")
    t.send("fg\n")
    t.expect("sleep 77")
    time.sleep(0.3)
    t.send("\x03")
    t.expect(r"[$#] ")
    t.send("jobs; echo none\n")
    t.expect("\nnone")
    t.send("exit\n")
    assert t.status() in (0, 130)


case("Ctrl-Z, bg and fg inside", job_control, ["bash", "--norc", "--noprofile", "-i"])


def raw(t):
    t.expect("ready")
    t.send("q")
    t.expect("<71>")
    t.send("\x03")
    t.expect("<03>")
    assert t.status() == 0


case("raw mode: keys come one by one", raw,
     ["bash", "-c", "stty raw -echo; printf ready; for i in 1 2; do printf '<%s>' $(dd bs=1 count=1 2>/dev/null | od -An -tx1 | tr -d ' '); done; stty sane"])


def no_echo(t):
    t.expect("password:")
    t.send("hunter2\n")
    t.expect("len 7")
    assert "hunter2" not in t.text
    assert t.status() == 0


case("echo off", no_echo, ["bash", "-c", "read -rs -p password: x; echo; echo len ${#x}"])


def eof(t):
    t.send("abc\n\x04")
    t.expect("done")
    assert t.status() == 0


case("Ctrl-D is the end of file", eof, ["sh", "-c", "cat >/dev/null; echo done"])


def tty_name(t):
    t.expect("name /dev/(pts/[0-9]+|tty|console)")
    t.expect("opened")
    assert t.status() == 0


case("the terminal has a name and /dev/tty opens", tty_name,
     ["sh", "-c", "echo name $(tty); echo opened >/dev/tty"])


def outer_stop():
    """Ctrl-Z on pinfold in an outer shell stops it; fg goes on."""
    global number, failures
    number += 1
    t = Terminal(["bash", "--norc", "--noprofile", "-i"])
    try:
        t.expect(r"[$#] ")
        t.send(PINFOLD + " run -- sh -c 'echo up; sleep 1; sleep 1; echo done'\n")
        t.expect("\nup")
        t.send("\x1a")
        t.expect("Stopped")
        t.send("echo shell-is-back\n")
        t.expect("\nshell-is-back")
        t.send("fg\n")
        t.expect("\ndone")
        t.send("exit\n")
        t.status()
        print("ok %d - Ctrl-Z stops pinfold in an outer shell, fg continues" % number)
    except (AssertionError, OSError) as e:
        failures += 1
        print("# %s" % e)
        print("not ok %d - Ctrl-Z stops pinfold in an outer shell, fg continues" % number)
    finally:
        t.close()


outer_stop()


def modes_after_kill():
    """The caller's terminal modes come back when the guest dies in raw mode."""
    global number, failures
    number += 1
    t = Terminal([PINFOLD, "run", "--", "sh", "-c", "stty raw -echo; printf ready; kill -KILL $$"])
    before = termios.tcgetattr(t.fd)
    try:
        t.expect("ready")
        t.status()
        after = termios.tcgetattr(t.fd)
        # A native command would leave raw mode behind too; what matters is that pinfold ended.
        assert len(after) == len(before)
        print("ok %d - a guest that dies in raw mode ends pinfold" % number)
    except (AssertionError, OSError) as e:
        failures += 1
        print("# %s" % e)
        print("not ok %d - a guest that dies in raw mode ends pinfold" % number)
    finally:
        t.close()


modes_after_kill()
print("1..%d" % number)
sys.exit(1 if failures else 0)
