"""Exports of Kinora, read with OpenTelemetry's own messages: the package `opentelemetry-proto`.

The first argument is a file with a JSON array of request bodies. Prints the spans that the messages hold, as a JSON array.
A field that the messages lack is an error, and so is one of another type.
"""

import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

# The JSON of OTLP differs from that of Protocol Buffers in two things
# (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): these are hexadecimal, and enumerations are numbers.
IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
NUMBERS = ("kind", "code")


def as_protobuf(value):
    """The same in the JSON of Protocol Buffers."""
    if isinstance(value, list):
        return [as_protobuf(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, inner in value.items():
        if name in IDS:
            raw = bytes.fromhex(inner)
            assert len(raw) == IDS[name] and any(raw), (name, inner)
            found[name] = base64.b64encode(raw).decode()
        else:
            assert name not in NUMBERS or isinstance(inner, int), (name, inner)
            found[name] = as_protobuf(inner)
    return found


def attributes(pairs):
    """Attributes as texts."""
    return {pair.key: str(getattr(pair.value, pair.value.WhichOneof("value"))) for pair in pairs}


def spans(body):
    """The spans of one request."""
    request = ExportTraceServiceRequest()
    json_format.ParseDict(as_protobuf(json.loads(body)), request, ignore_unknown_fields=False)
    for process in request.resource_spans:
        resource = attributes(process.resource.attributes)
        for scope in process.scope_spans:
            assert scope.scope.name, "the scope has no name"
            for span in scope.spans:
                Span.SpanKind.Name(span.kind)
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span
                yield {
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex() or None,
                    "name": span.name,
                    "kind": span.kind,
                    "begun_ns": span.start_time_unix_nano,
                    "ended_ns": span.end_time_unix_nano,
                    "attributes": attributes(span.attributes),
                    "is_error": span.status.code == Status.STATUS_CODE_ERROR,
                    "resource": resource,
                }


bodies = json.load(open(sys.argv[1], encoding="utf-8"))
print(json.dumps([span for body in bodies for span in spans(body)]))
