#!/usr/bin/env python3
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Record the JSON bodies that the official SDK exchanges with a server.

    pip install tinker==0.24.1
    python record.py --url http://127.0.0.1:8000 --model MODEL --out FILE

SDKs up to 0.24.1 send training data as JSON unless the server asks for protobuf. The program puts a recording proxy
before the server, trains and samples a little through the SDK, and writes every exchange that it made, in order:
method, path, body, status and answer. Ids that differ from run to run are replaced by their kind and number.
"""
import argparse
import http.client
import http.server
import json
import logging
import re
import threading
import urllib.parse

SKIPPED = {"/api/v1/telemetry", "/api/v1/session_heartbeat", "/api/v1/client/config", "/api/v1/client/dynamic_config"}


def parsed(data):
    """Return the value of JSON, or the text of anything else."""
    try:
        return json.loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")


class Recorder(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, url, protobuf_results):
        super().__init__(("127.0.0.1", 0), Handler)
        self.target = urllib.parse.urlsplit(url)
        self.protobuf_results = protobuf_results
        self.lock = threading.Lock()
        self.exchanges = []

    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "accept-encoding", "content-length")}
        if not self.server.protobuf_results and "Accept" in headers:
            headers["Accept"] = "application/json"
        upstream = http.client.HTTPConnection(self.server.target.netloc, timeout=330)
        upstream.request(self.command, self.path, body or None, headers)
        answer = upstream.getresponse()
        data = answer.read()
        upstream.close()
        self.record(body, answer, data)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("Content-Type") or "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = forward

    def record(self, body, answer, data):
        path = self.path.split("?")[0]
        if path in SKIPPED:
            return
        reply = parsed(data)
        if isinstance(reply, dict) and reply.get("type") == "try_again" or answer.status == 408:
            return
        exchange = {
            "method": self.command, "path": path, "contentType": self.headers.get("Content-Type"),
            "body": parsed(body) if body else None, "status": answer.status, "answer": reply,
        }
        with self.server.lock:
            self.server.exchanges.append(exchange)


def send(recorder, method, path, body=None, content_type="application/json"):
    """Make a call that the SDK does not make, and record it."""
    connection = http.client.HTTPConnection("127.0.0.1", recorder.server_address[1], timeout=330)
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    connection.request(method, path, data, {"Content-Type": content_type, "X-API-Key": "tml-record"})
    answer = connection.getresponse()
    return answer.status, parsed(answer.read())


def train(service, model):
    """Exchange what a training loop exchanges, through the SDK."""
    import numpy
    from tinker import types

    client = service.create_lora_training_client(base_model=model, rank=4, seed=7)
    tokens, targets = [1, 2, 3, 4], [2, 3, 4, 5]
    plain = [types.Datum(model_input=types.ModelInput.from_ints(tokens),
                         loss_fn_inputs={"target_tokens": targets, "weights": [0.0, 1.0, 0.1, 1.0]})]
    policy = [types.Datum(model_input=types.ModelInput.from_ints(tokens[:n]),
                          loss_fn_inputs={"target_tokens": numpy.array(targets[:n], dtype=numpy.int64),
                                          "logprobs": numpy.array([-5.5, -5.25, -5.1, -5.0][:n], dtype=numpy.float32),
                                          "advantages": numpy.array([0.0, 1.0, -0.5, 1.0][:n], dtype=numpy.float32)})
              for n in (4, 2)]
    client.forward(plain, "cross_entropy").result()
    client.forward_backward(policy, "ppo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}).result()
    client.optim_step(types.AdamParams(learning_rate=1e-3)).result()
    state = client.save_state("state").result().path
    sampler = client.save_weights_for_sampler("sampler").result().path
    run = client.get_info().model_id
    if sampler.count("/") == 3:
        sampler = f"tinker://{run}/sampler_weights/sampler"
    sampling = service.create_sampling_client(model_path=sampler)
    params = types.SamplingParams(max_tokens=3, seed=5, temperature=1.0, stop=["\n\n"])
    sampling.sample(types.ModelInput.from_ints(tokens), 2, params).result()
    sampling.compute_logprobs(types.ModelInput.from_ints(tokens)).result()
    again = service.create_training_client_from_state_with_optimizer(state)
    again.forward(plain, "cross_entropy").result()
    return run


def probe(recorder, run):
    """Exchange what a client meets that the SDK hides: refusals, repeats and what is missing."""
    calls = [
        ("POST", "/api/v1/forward_backward", b"\n\x01m\x10\x01", "application/x-protobuf"),
        ("POST", "/api/v1/save_weights", {"model_id": run, "path": "state", "seq_id": 9, "type": "save_weights"}),
        ("POST", "/api/v1/optim_step", {"model_id": run, "seq_id": 20, "adam_params": {"learning_rate": 0.0}}),
        ("POST", "/api/v1/optim_step", {"model_id": run, "seq_id": 20, "adam_params": {"learning_rate": 0.0}}),
        ("POST", "/api/v1/optim_step", {"model_id": "model_missing", "seq_id": 1, "adam_params": {}}),
        ("POST", "/api/v1/retrieve_future", {"request_id": "987654321"}),
        ("POST", "/api/v1/weights_info", {"tinker_path": f"tinker://{run}/weights/state"}),
        ("POST", "/api/v1/weights_info", {"tinker_path": f"tinker://{run}/weights/missing"}),
        ("GET", "/api/v1/training_runs?limit=100&offset=0", None),
        ("GET", f"/api/v1/training_runs/{run}/checkpoints", None),
        ("GET", "/api/v1/checkpoints?limit=100&offset=0", None),
        ("PUT", f"/api/v1/training_runs/{run}/checkpoints/weights/state/ttl", {"ttl_seconds": 60}),
        ("DELETE", f"/api/v1/training_runs/{run}/checkpoints/weights/state", None),
        ("GET", "/api/v1/sessions", None),
        ("POST", "/api/v1/client/dynamic_config", {}),
        ("POST", "/api/v1/unload_model", {"model_id": run, "type": "unload_model"}),
    ]
    for call in calls:
        status, answer = send(recorder, *call)
        if status == 200 and isinstance(answer, dict) and "request_id" in answer:
            send(recorder, "POST", "/api/v1/retrieve_future", {"request_id": answer["request_id"]})
    # An operation of a model that is unloaded fails after it was accepted.
    status, answer = send(recorder, "POST", "/api/v1/optim_step", {"model_id": run, "seq_id": 21, "adam_params": {}})
    if status == 200:
        send(recorder, "POST", "/api/v1/retrieve_future", {"request_id": answer["request_id"]})


ID = re.compile(r"\b(session|model|sampling)_[0-9a-f]{8}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\breq-[0-9A-Za-z-]+\b")


def stable(exchanges):
    """Replace ids by their order of appearance."""
    known = {}
    text = json.dumps(exchanges)

    def name(match):
        kind = match.group(1) or "id"
        return known.setdefault(match.group(0), f"{kind}_{len(known):08d}")

    text = ID.sub(name, text)
    # The form of a time stays, with or without a zone.
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?", "2026-01-01T00:00:00.000000", text)
    return json.loads(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--server", required=True, help="name and version of the server, for the file")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    import tinker

    recorder = Recorder(args.url, protobuf_results=False)
    threading.Thread(target=recorder.serve_forever, daemon=True).start()
    service = tinker.ServiceClient(base_url=recorder.url(), api_key="tml-record")
    run = train(service, args.model)
    probe(recorder, run)
    with recorder.lock:
        exchanges = stable(recorder.exchanges)
    with open(args.out, "w", encoding="utf-8") as out:
        out.write('{"sdk": %s, "server": %s, "exchanges": [\n' % (json.dumps(tinker.__version__), json.dumps(args.server)))
        out.write(",\n".join(json.dumps(e) for e in exchanges))
        out.write("\n]}\n")
    print(f"{len(exchanges)} exchanges")


if __name__ == "__main__":
    main()
