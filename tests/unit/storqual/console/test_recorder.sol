#!{python}
import os, select, sys
with open(os.environ["STORQUAL_PLAYED"], "a") as log:
    log.write(" ".join(sys.argv[1:]) + " | " + os.environ.get("IPMI_PASSWORD", "") + chr(10))
if sys.argv[-1] == "deactivate":
    sys.exit(1)
os.write(1, b"[SOL Session operational.  Use ~? for help]\r\n")
typed = b""
while not typed.endswith(b"q"):
    data = os.read(0, 100)
    if not data:
        sys.exit("standard input ended")
    typed += data
    os.write(1, b"typed " + repr(typed).encode() + b"\r\n")
sys.stderr.write("SOL session closed by BMC" + chr(10))
sys.exit(7)
