//! Spans in OTLP's JSON encoding
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>): ids in hexadecimal digits,
//! 64-bit numbers as strings, enumerations as numbers.

use serde_json::{Value as Json, json};

use crate::options::TraceOptions;
use crate::span::{AttributeValue, SpanRecord};

/// The status of a span whose work failed.
const STATUS_ERROR: u8 = 2;
const NS_OF_MS: u64 = 1_000_000;

/// The source of the spans.
#[derive(Clone, Debug)]
pub(crate) struct OtlpResource(Json);

impl OtlpResource {
    pub(crate) fn from_options(options: &TraceOptions) -> Self {
        let attributes = [
            ("service.name", options.service.clone()),
            ("service.version", options.version.to_owned()),
            ("service.instance.id", options.instance.clone()),
        ];
        let attributes: Vec<Json> = attributes
            .into_iter()
            .map(|(name, value)| attribute(name, &AttributeValue::from(value)))
            .collect();
        Self(json!({"attributes": attributes}))
    }

    /// The body of a request that exports `spans`.
    pub(crate) fn request(&self, spans: &[SpanRecord]) -> String {
        let spans: Vec<Json> = spans.iter().map(span).collect();
        let scope = json!({"name": "kinora"});
        let of_scope = json!({"scope": scope, "spans": spans});
        json!({"resourceSpans": [{"resource": self.0, "scopeSpans": [of_scope]}]}).to_string()
    }
}

fn span(record: &SpanRecord) -> Json {
    let attributes = record.attributes.iter();
    let attributes: Vec<Json> = attributes
        .map(|(name, value)| attribute(name, value))
        .collect();
    let mut span = json!({
        "traceId": format!("{:032x}", record.trace),
        "spanId": format!("{:016x}", record.id),
        "name": record.name,
        "kind": record.kind as u8,
        "startTimeUnixNano": nanoseconds(record.begun_ms),
        "endTimeUnixNano": nanoseconds(record.ended_ms),
        "attributes": attributes,
    });
    if let Some(parent) = record.parent {
        span["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    if record.is_error {
        span["status"] = json!({"code": STATUS_ERROR});
    }
    span
}

fn nanoseconds(at_ms: u64) -> String {
    at_ms.saturating_mul(NS_OF_MS).to_string()
}

fn attribute(name: &str, value: &AttributeValue) -> Json {
    let value = match value {
        AttributeValue::Text(text) => json!({"stringValue": text}),
        AttributeValue::Count(count) => json!({"intValue": count.to_string()}),
    };
    json!({"key": name, "value": value})
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU64, NonZeroU128};

    use super::*;
    use crate::span::SpanRole;

    #[test]
    fn a_request_is_as_the_protocol_s_example_has_it() {
        let source = OtlpResource::from_options(&TraceOptions {
            endpoint: String::new(),
            headers: String::new(),
            ratio: 1.0,
            service: "my.service".to_owned(),
            instance: "one".to_owned(),
            version: "9",
        });
        // Ids with leading zeros keep their length.
        let record = SpanRecord {
            name: "run".into(),
            kind: SpanRole::Server,
            trace: NonZeroU128::new(0x5b8e).unwrap(),
            id: NonZeroU64::new(0xeee1).unwrap(),
            parent: NonZeroU64::new(0x0a),
            begun_ms: 1_544_712_660_000,
            ended_ms: 1_544_712_661_000,
            attributes: vec![
                ("a", AttributeValue::from("b")),
                ("n", AttributeValue::from(3)),
            ],
            is_error: true,
        };
        let root = SpanRecord {
            parent: None,
            is_error: false,
            ..record.clone()
        };
        let body: Json = serde_json::from_str(&source.request(&[record, root])).unwrap();
        let text = |name: &str, value: &str| json!({"key": name, "value": {"stringValue": value}});
        let own = &body["resourceSpans"][0];
        assert_eq!(
            own["resource"],
            json!({"attributes": [
                text("service.name", "my.service"),
                text("service.version", "9"),
                text("service.instance.id", "one"),
            ]})
        );
        let scoped = &own["scopeSpans"][0];
        assert_eq!(scoped["scope"], json!({"name": "kinora"}));
        assert_eq!(
            scoped["spans"][0],
            json!({
                "traceId": "00000000000000000000000000005b8e",
                "spanId": "000000000000eee1",
                "parentSpanId": "000000000000000a",
                "name": "run",
                "kind": 2,
                "startTimeUnixNano": "1544712660000000000",
                "endTimeUnixNano": "1544712661000000000",
                "attributes": [
                    text("a", "b"),
                    {"key": "n", "value": {"intValue": "3"}},
                ],
                "status": {"code": 2},
            })
        );
        let root = &scoped["spans"][1];
        assert!(root.get("parentSpanId").is_none() && root.get("status").is_none());
    }
}
