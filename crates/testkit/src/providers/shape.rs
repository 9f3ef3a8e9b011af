//! What a field of a body may be. A key that no shape names is refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The shape of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// A text that is not empty.
    Text,
    /// A whole number between these, both included.
    Whole(i64, i64),
    /// `true` or `false`.
    Flag,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these whole numbers.
    OneOfWhole(&'static [i64]),
    /// A URL on the web, or `data:` with a media type and base64.
    Url,
    /// A URL on the web.
    WebUrl,
    /// Bytes as base64.
    Base64,
    /// At least one and at most this many of a shape.
    List(&'static Shape, usize),
    /// An object with these fields and no other.
    Object(&'static [Field]),
    /// The first shape that fits.
    Either(&'static [Shape]),
}

/// A field of an object: its name, whether it must be there, its shape.
pub(crate) type Field = (&'static str, Need, Shape);

/// Whether a field must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Must,
    May,
}

impl Shape {
    /// Whether `value` has this shape; otherwise where it has not.
    pub(crate) fn check(&self, value: &Value, at: &str) -> Result<(), String> {
        let fits = match self {
            Self::Text => value.as_str().is_some_and(|text| !text.is_empty()),
            Self::Whole(min, max) => value
                .as_i64()
                .is_some_and(|one| (*min..=*max).contains(&one)),
            Self::Flag => value.is_boolean(),
            Self::OneOf(words) => value.as_str().is_some_and(|one| words.contains(&one)),
            Self::OneOfWhole(numbers) => value.as_i64().is_some_and(|one| numbers.contains(&one)),
            Self::Url => value
                .as_str()
                .is_some_and(|url| is_web(url) || is_data(url)),
            Self::WebUrl => value.as_str().is_some_and(is_web),
            Self::Base64 => value.as_str().is_some_and(is_base64),
            Self::List(shape, max) => return check_list(shape, *max, value, at),
            Self::Object(fields) => return check_object(fields, value, at),
            Self::Either(shapes) => shapes.iter().any(|one| one.check(value, at).is_ok()),
        };
        if fits {
            return Ok(());
        }
        Err(format!("{at} must be {self:?}, not {value}"))
    }
}

fn check_list(shape: &Shape, max: usize, value: &Value, at: &str) -> Result<(), String> {
    let Some(items) = value.as_array() else {
        return Err(format!("{at} must be a list"));
    };
    if items.is_empty() || items.len() > max {
        return Err(format!("{at} must have 1 to {max} items"));
    }
    let mut items = items.iter().enumerate();
    items.try_for_each(|(index, item)| shape.check(item, &format!("{at}[{index}]")))
}

fn check_object(fields: &[Field], value: &Value, at: &str) -> Result<(), String> {
    let Some(object) = value.as_object() else {
        return Err(format!("{at} must be an object"));
    };
    for key in object.keys() {
        if !fields.iter().any(|(name, _, _)| name == key) {
            return Err(format!("{at}.{key} is unknown"));
        }
    }
    for (name, need, shape) in fields {
        let at = format!("{at}.{name}");
        match (object.get(*name), need) {
            (Some(value), _) => shape.check(value, &at)?,
            (None, Need::Must) => return Err(format!("{at} is missing")),
            (None, Need::May) => {}
        }
    }
    Ok(())
}

fn is_web(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

fn is_data(text: &str) -> bool {
    let parts = text.strip_prefix("data:");
    let parts = parts.and_then(|rest| rest.split_once(";base64,"));
    parts.is_some_and(|(kind, bytes)| kind.contains('/') && is_base64(bytes))
}

fn is_base64(text: &str) -> bool {
    !text.is_empty() && STANDARD.decode(text).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BODY: Shape = Shape::Object(&[
        ("prompt", Need::Must, Shape::Text),
        ("seconds", Need::May, Shape::Whole(2, 15)),
        ("images", Need::May, Shape::List(&Shape::Url, 2)),
    ]);

    #[test]
    fn what_a_shape_does_not_name_is_refused_with_its_place() {
        let data = "data:image/png;base64,ZmFjZQ==";
        let fine = json!({"prompt": "x", "seconds": 2, "images": ["https://e.org/1.png", data]});
        assert_eq!(BODY.check(&fine, "body"), Ok(()));
        for (body, at) in [
            (json!({}), "body.prompt is missing"),
            (json!({"prompt": ""}), "body.prompt must be"),
            (json!({"prompt": "x", "sneed": 7}), "body.sneed is unknown"),
            (
                json!({"prompt": "x", "seconds": "5"}),
                "body.seconds must be",
            ),
            (
                json!({"prompt": "x", "seconds": 16}),
                "body.seconds must be",
            ),
            (
                json!({"prompt": "x", "seconds": null}),
                "body.seconds must be",
            ),
            (
                json!({"prompt": "x", "images": []}),
                "body.images must have",
            ),
            (
                json!({"prompt": "x", "images": ["a.png"]}),
                "body.images[0] must be",
            ),
        ] {
            let refused = BODY.check(&body, "body").unwrap_err();
            assert!(refused.starts_with(at), "{refused}");
        }
    }
}
