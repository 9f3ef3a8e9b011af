//! CBOR with deterministic encoding (RFC 8949, 4.2.1): shortest lengths, keys of a map in the order of their bytes.

/// A data item of the kinds that manifests have.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Unsigned(u64),
    /// -1 minus the number.
    Negative(u64),
    Bytes(Vec<u8>),
    Text(String),
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Tagged(u64, Box<Value>),
    Null,
}

impl Value {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn bytes(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }

    /// A map whose keys are texts.
    pub(crate) fn map<const N: usize>(entries: [(&str, Self); N]) -> Self {
        let entries = entries.into_iter();
        Self::Map(
            entries
                .map(|(key, value)| (Self::text(key), value))
                .collect(),
        )
    }

    /// The same map with one more entry; other kinds stay as they are.
    pub(crate) fn with(mut self, key: &str, value: Self) -> Self {
        if let Self::Map(entries) = &mut self {
            entries.push((Self::text(key), value));
        }
        self
    }

    pub(crate) fn encoded(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Unsigned(number) => head(0, *number, bytes),
            Self::Negative(number) => head(1, *number, bytes),
            Self::Bytes(content) => {
                head(2, content.len() as u64, bytes);
                bytes.extend(content);
            }
            Self::Text(text) => {
                head(3, text.len() as u64, bytes);
                bytes.extend(text.as_bytes());
            }
            Self::Array(items) => {
                head(4, items.len() as u64, bytes);
                for item in items {
                    item.encode(bytes);
                }
            }
            Self::Map(entries) => {
                head(5, entries.len() as u64, bytes);
                let mut entries: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| (key.encoded(), value))
                    .collect();
                entries.sort_by(|(one, _), (other, _)| one.cmp(other));
                for (key, value) in entries {
                    bytes.extend(key);
                    value.encode(bytes);
                }
            }
            Self::Tagged(tag, value) => {
                head(6, *tag, bytes);
                value.encode(bytes);
            }
            Self::Null => bytes.push(0xf6),
        }
    }
}

/// The first bytes of an item: its major type, and a number or length (RFC 8949, 3).
fn head(major: u8, number: u64, bytes: &mut Vec<u8>) {
    let major = major << 5;
    let wide = number.to_be_bytes();
    match number {
        0..=0x17 => bytes.push(major | wide[7]),
        0x18..=0xff => bytes.extend([major | 0x18, wide[7]]),
        0x100..=0xffff => {
            bytes.push(major | 0x19);
            bytes.extend(&wide[6..]);
        }
        0x1_0000..=0xffff_ffff => {
            bytes.push(major | 0x1a);
            bytes.extend(&wide[4..]);
        }
        _ => {
            bytes.push(major | 0x1b);
            bytes.extend(wide);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(value: &Value) -> String {
        let bytes = value.encoded();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 8949, appendix A.
    #[test]
    fn the_examples_of_the_standard_are_encoded_as_it_says() {
        let numbers = [1, 2].map(Value::Unsigned).to_vec();
        for (value, expected) in [
            (Value::Unsigned(0), "00"),
            (Value::Unsigned(23), "17"),
            (Value::Unsigned(24), "1818"),
            (Value::Unsigned(1000), "1903e8"),
            (Value::Unsigned(1_000_000), "1a000f4240"),
            (Value::Unsigned(1_000_000_000_000), "1b000000e8d4a51000"),
            (Value::Negative(9), "29"),
            (Value::Negative(999), "3903e7"),
            (Value::Null, "f6"),
            (Value::bytes(&[1, 2, 3, 4]), "4401020304"),
            (Value::text("IETF"), "6449455446"),
            (
                Value::Tagged(0, Box::new(Value::text("2013-03-21T20:04:00Z"))),
                "c074323031332d30332d32315432303a30343a30305a",
            ),
            (Value::Array(numbers.clone()), "820102"),
            (
                Value::map([("b", Value::Array(numbers)), ("a", Value::Unsigned(1))]),
                "a26161016162820102",
            ),
        ] {
            assert_eq!(hex(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn shorter_keys_come_first() {
        let map = Value::map([
            ("when", Value::Null),
            ("alg", Value::Null),
            ("url", Value::Null),
        ]);
        assert_eq!(hex(&map), "a363616c67f66375726cf6647768656ef6");
    }
}
