"""usage: quotas.py PROGRAM FOLDER

A program in a run of PROGRAM takes all that it can of its user's quotas: descriptors on their way
through Unix sockets, inotify instances. Prints what is left for the user outside meanwhile, a line
each: `sends`, `watches`, `runs`.
"""

import ctypes
import os
import resource
import socket
import subprocess
import sys

PROGRAM, FOLDER = sys.argv[1:3]
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
os.chdir(FOLDER)
env = dict(os.environ, HOME=FOLDER)
for words in (["init", "home", "--no-passphrase"],
              ["token", "issue", "home", "--agent", "me", "--tool", "echo"]):
    subprocess.run([PROGRAM, *words], check=True, capture_output=True, env=env)
os.makedirs("work", exist_ok=True)

FLOOD = """
import array, ctypes, resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept = []
some = array.array('i', [0] * 253)
try:
    while len(kept) < 64:
        a, b = socket.socketpair()
        a.setblocking(False)
        kept += [a, b]
        while True:
            try: a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, some)])
            except BlockingIOError: break
except OSError: pass
libc = ctypes.CDLL(None)
while len(kept) < 4096 and libc.inotify_init() >= 0: kept.append(1)
print('ready', flush=True)
sys.stdin.read()
"""
RUN = [PROGRAM, "run", "home", "--agent", "me", "--workspace", "work", "--"]
flood = subprocess.Popen(RUN + ["/usr/bin/python3", "-c", FLOOD], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True, env=env)
assert flood.stdout.readline() == "ready\n"
a, b = socket.socketpair()
try:
    socket.send_fds(a, [b"x"], [0])
    print("sends: yes")
except OSError as error:
    print("sends:", error)
print("watches:", "yes" if ctypes.CDLL(None).inotify_init() >= 0 else "no")
other = subprocess.run(RUN + ["/bin/true"], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env)
print("runs:", "yes" if other.returncode == 0 else other.stderr)
flood.stdin.close()
flood.wait()
