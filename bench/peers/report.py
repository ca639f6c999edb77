"""What a peer run reports: one JSON document on stdout."""

import json
import os
import resource
import sys
import time


class Run:
    """Measures from its creation, after the peer's imports, to report()."""

    def __init__(self, file):
        self.file = file
        self.started = time.perf_counter()
        self.cpu_started = time.process_time()

    def report(self, peer, rows, files_out, **more):
        seconds = time.perf_counter() - self.started
        cpu_seconds = time.process_time() - self.cpu_started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({
            "peer": peer,
            "seconds": round(seconds, 4),
            "cpu_seconds": round(cpu_seconds, 4),
            "rows": rows,
            "bytes_in": os.path.getsize(self.file),
            "bytes_out": sum(map(os.path.getsize, files_out)),
            "files_out": len(files_out),
            "peak_rss_bytes": peak if sys.platform == "darwin" else peak * 1024,
            **more,
        }))  # fmt: skip
