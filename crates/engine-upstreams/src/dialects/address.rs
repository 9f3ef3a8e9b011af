//! Where a call goes and where a result may come from: paths with placeholders, of which no value can leave its
//! segment, and the origins of results as patterns.

use kinora_http_fetch::{AddressVerdict, classify};
use serde::Deserialize;
use url::{Host, Url};

use super::template::{Placeholder, TemplateScope, TextTemplate, ValueForm, ValueName, text_of};
use crate::servers::{UpstreamError, origin};

/// A path with placeholders, relative to the base URL, such as `tasks/{id}?verbose=1`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct PathTemplate {
    segments: Vec<TextTemplate>,
    query: Vec<(String, TextTemplate)>,
}

/// A path below the base URL, with its query, escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EncodedPath {
    pub(crate) path: String,
    pub(crate) query: Option<String>,
}

impl TryFrom<String> for PathTemplate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (path, query) = text.split_once('?').unwrap_or((&text, ""));
        if path.contains('#') || query.contains('#') {
            return Err("a path has no fragment (#)".to_owned());
        }
        let segments = path.split('/').map(|segment| {
            if matches!(segment, "" | "." | "..") {
                return Err(format!(
                    "{text:?} is not a path such as \"tasks/{{id}}\": it is relative to base_url, without a slash at \
                     its ends and without empty, '.' or '..' segments"
                ));
            }
            TextTemplate::try_from(segment.to_owned())
        });
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok::<_, String>((name.to_owned(), value.to_owned().try_into()?))
        });
        Ok(Self {
            segments: segments.collect::<Result<_, _>>()?,
            query: pairs.collect::<Result<_, _>>()?,
        })
    }
}

impl PathTemplate {
    /// Its placeholders.
    pub(crate) fn holes(&self) -> impl Iterator<Item = &Placeholder> {
        let texts = self.query.iter().map(|(_, value)| value);
        self.segments
            .iter()
            .chain(texts)
            .flat_map(TextTemplate::holes)
    }

    /// The path for `scope`.
    ///
    /// # Errors
    /// Those of the scope; [`UpstreamError::Unsupported`] if a placeholder has no value, or one that would be an
    /// empty or a dot segment. A pair of the query whose placeholders have no value is left out.
    pub(crate) fn expand(&self, scope: &dyn TemplateScope) -> Result<EncodedPath, UpstreamError> {
        let segments = self.segments.iter().map(|segment| {
            segment.join(|piece| match piece {
                Ok(literal) => Ok(escape(literal)),
                Err(hole) => segment_of(hole, scope),
            })
        });
        let path = segments
            .collect::<Result<Vec<_>, UpstreamError>>()?
            .join("/");
        if !is_path(&path) {
            return Err(UpstreamError::Unsupported(
                "a value that would leave its place in a path".into(),
            ));
        }
        let mut query = Vec::new();
        for (name, value) in &self.query {
            if let Some(value) = value.text(scope)? {
                query.push(format!("{}={}", escape(name), escape(&value)));
            }
        }
        let query = (!query.is_empty()).then(|| query.join("&"));
        Ok(EncodedPath { path, query })
    }
}

/// A value as a part of one segment, or as several with `:path` and `:2`.
fn segment_of(hole: &Placeholder, scope: &dyn TemplateScope) -> Result<String, UpstreamError> {
    let value = scope.value(hole, None)?.map(text_of);
    let value = value.filter(|value| !value.is_empty()).ok_or_else(|| {
        UpstreamError::Unsupported(format!("a path in which {hole} has no value").into())
    })?;
    // A path as it was sent is escaped already.
    if hole.name == ValueName::Path {
        return Ok(value);
    }
    let has_segments = matches!(hole.form, ValueForm::Path | ValueForm::Segments(_));
    if !has_segments {
        return Ok(escape(&value));
    }
    let segments: Vec<String> = value.split('/').map(escape).collect();
    Ok(segments.join("/"))
}

/// Whether every segment of an escaped path is one.
pub(crate) fn is_path(path: &str) -> bool {
    let is_plain = path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'\\'));
    is_plain
        && path.split('/').all(|segment| {
            let plain = segment.to_ascii_lowercase().replace("%2e", ".");
            !matches!(&*plain, "" | "." | "..")
        })
}

/// Escapes everything but the characters of a path segment (RFC 3986, `pchar`).
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$'()*,;=:@".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// Origins of results: one origin, `https://*.example.com` or `https://*`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum OriginPattern {
    /// Exactly this origin, in ASCII form.
    Exact(String),
    /// Every `https` host that ends with this domain, and has one label more at least.
    Below(String),
    /// Every `https` host.
    Any,
}

impl TryFrom<String> for OriginPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not an origin such as https://bucket.example.com, https://*.example.com or https://*"
            )
        };
        if text == "https://*" {
            return Ok(Self::Any);
        }
        let Some(domain) = text.strip_prefix("https://*.") else {
            let exact = origin(&text).filter(|origin| !origin.contains('*'));
            return exact.map(Self::Exact).ok_or_else(wrong);
        };
        let host = origin(&format!("https://{domain}"));
        let host = host
            .as_deref()
            .and_then(|origin| origin.strip_prefix("https://"));
        match host {
            Some(host)
                if host == domain.to_ascii_lowercase() && !host.contains(['*', ':', '[']) =>
            {
                Ok(Self::Below(format!(".{host}")))
            }
            _ => Err(wrong()),
        }
    }
}

impl OriginPattern {
    /// Whether `url` has such an origin.
    pub(crate) fn covers(&self, url: &Url) -> bool {
        let is_usual = url.scheme() == "https" && url.port().is_none();
        match self {
            Self::Exact(origin) => *origin == url.origin().ascii_serialization(),
            Self::Below(domain) => {
                let host = url.host_str().unwrap_or_default();
                is_usual && host.len() > domain.len() && host.ends_with(domain.as_str())
            }
            Self::Any => is_usual,
        }
    }
}

/// Whether `url` names an address that is not public. A host name is judged when it is resolved.
pub(crate) fn is_private_address(url: &Url) -> bool {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        _ => return false,
    };
    classify(address) != AddressVerdict::Public
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Every value is this text.
    struct Always<'a>(&'a str);

    impl TemplateScope for Always<'_> {
        fn value(&self, _: &Placeholder, _: Option<usize>) -> Result<Option<Value>, UpstreamError> {
            Ok(Some(json!(self.0)))
        }
    }

    fn expand(path: &str, value: &str) -> Option<String> {
        let expanded = PathTemplate::try_from(path.to_owned())
            .unwrap()
            .expand(&Always(value))
            .ok()?;
        let query = expanded.query.map(|query| format!("?{query}"));
        Some(expanded.path + &query.unwrap_or_default())
    }

    #[test]
    fn a_value_is_a_segment_or_the_segments_it_is_said_to_be() {
        for (path, value, expanded) in [
            ("t/{id}", "a/../b?c#d", Some("t/a%2F..%2Fb%3Fc%23d")),
            ("t/{id}", "..", None),
            ("t/{id}", "", None),
            ("t/x{id}", "..", Some("t/x..")),
            (
                "{id:path}",
                "models/m-1/operations/o",
                Some("models/m-1/operations/o"),
            ),
            ("{id:path}", "models/../o", None),
            ("{id:path}", "/models", None),
            ("{id:path}", "a//b", None),
            ("m/{model}:run", "veo 3", Some("m/veo%203:run")),
            ("t?a=1&b={id}", "x&y=1", Some("t?a=1&b=x%26y=1")),
            ("t/{id}", "a\\b%2e", Some("t/a%5Cb%252e")),
        ] {
            assert_eq!(expand(path, value).as_deref(), expanded, "{path} {value}");
        }
    }

    #[test]
    fn an_origin_is_exact_or_below_a_domain() {
        let covers = |pattern: &str, url: &str| {
            OriginPattern::try_from(pattern.to_owned())
                .unwrap()
                .covers(&Url::parse(url).unwrap())
        };
        assert!(covers("https://*.e.org", "https://a.e.org/x"));
        assert!(covers("https://*.e.org", "https://a.b.E.org/x"));
        assert!(covers("https://*", "https://any.example/x"));
        assert!(covers("http://10.0.0.1:9000", "http://10.0.0.1:9000/x"));
        for (pattern, url) in [
            ("https://*.e.org", "https://e.org/x"),
            ("https://*.e.org", "https://evil-e.org/x"),
            ("https://*.e.org", "https://a.e.org.evil.com/x"),
            ("https://*.e.org", "http://a.e.org/x"),
            ("https://*.e.org", "https://a.e.org:8443/x"),
            ("https://*", "http://any.example/x"),
            ("https://*", "https://any.example:22/x"),
            ("https://e.org", "https://a.e.org/x"),
        ] {
            assert!(!covers(pattern, url), "{pattern} {url}");
        }
        for wrong in [
            "*",
            "https://*.",
            "https://*.*",
            "http://*.e.org",
            "https://a.*.org",
            "https://*.e.org/x",
            "e.org",
            "https://*.e.org:8443",
        ] {
            assert!(
                OriginPattern::try_from(wrong.to_owned()).is_err(),
                "{wrong}"
            );
        }
        assert!(is_private_address(
            &Url::parse("https://127.0.0.1/").unwrap()
        ));
        assert!(is_private_address(
            &Url::parse("https://2130706433/").unwrap()
        ));
        assert!(is_private_address(
            &Url::parse("https://[::ffff:10.0.0.1]/").unwrap()
        ));
        assert!(!is_private_address(
            &Url::parse("https://1.1.1.1/").unwrap()
        ));
    }

    proptest! {
        #[test]
        fn no_identifier_leaves_its_path(id in "\\PC{0,30}", form in "(:path)?") {
            let path: PathTemplate = format!("tasks/{{id{form}}}/content").try_into().unwrap();
            if let Ok(expanded) = path.expand(&Always(&id)) {
                let base = Url::parse("https://e.org/v1").unwrap();
                let mut url = base.clone();
                url.set_path(&format!("/v1/{}", expanded.path));
                prop_assert!(url.path().starts_with("/v1/tasks/") && url.path().ends_with("/content"), "{url}");
                prop_assert!(url.query().is_none() && url.fragment().is_none(), "{url}");
                if form.is_empty() {
                    prop_assert_eq!(url.path().split('/').count(), 5, "{}", url);
                }
            }
        }
    }
}
