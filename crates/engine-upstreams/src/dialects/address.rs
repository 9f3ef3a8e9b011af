//! Where a call goes and where a result may come from: paths with placeholders, of which no value can leave its
//! segment, and the origins of results as patterns.

use std::fmt;
use std::str::FromStr;

use kinora_http_fetch::{AddressVerdict, classify};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use url::{Host, Url};

use super::error::RemoteError;
use super::template::{Placeholder, TemplateScope, TextTemplate, ValueForm, ValueName, text_of};
use crate::servers::origin;

/// A path with placeholders, relative to the base URL, such as `tasks/{id}?verbose=1`.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl FromStr for PathTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
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
            segment.parse()
        });
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok::<_, String>((name.to_owned(), value.parse()?))
        });
        Ok(Self {
            segments: segments.collect::<Result<_, _>>()?,
            query: pairs.collect::<Result<_, _>>()?,
        })
    }
}

impl<'de> Deserialize<'de> for PathTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
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
    /// Those of the scope; [`RemoteError::Unsupported`] if a placeholder has no value, or one that would be an
    /// empty or a dot segment. A pair of the query whose placeholders have no value is left out.
    pub(crate) fn expand(&self, scope: &dyn TemplateScope) -> Result<EncodedPath, RemoteError> {
        let segments = self.segments.iter().map(|segment| {
            segment.join(|piece| match piece {
                Ok(literal) => Ok(escape(literal)),
                Err(hole) => segment_of(hole, scope),
            })
        });
        let path = segments.collect::<Result<Vec<_>, RemoteError>>()?.join("/");
        if !is_path(&path) {
            return Err(RemoteError::Unsupported(
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
fn segment_of(hole: &Placeholder, scope: &dyn TemplateScope) -> Result<String, RemoteError> {
    let value = scope.value(hole, None)?.map(text_of);
    let value = value.filter(|value| !value.is_empty()).ok_or_else(|| {
        RemoteError::Unsupported(format!("a path in which {hole} has no value").into())
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginPattern {
    /// Exactly this origin, in ASCII form.
    Exact(String),
    /// Every `https` host that ends with this domain, and has one label more at least.
    Below(String),
    /// Every `https` host.
    Any,
}

impl FromStr for OriginPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not an origin such as https://bucket.example.com, https://*.example.com or https://*"
            )
        };
        if text == "https://*" {
            return Ok(Self::Any);
        }
        let Some(domain) = text.strip_prefix("https://*.") else {
            let exact = origin(text).filter(|origin| !origin.contains('*'));
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

impl fmt::Display for OriginPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(origin) => f.write_str(origin),
            Self::Below(domain) => write!(f, "https://*{domain}"),
            Self::Any => f.write_str("https://*"),
        }
    }
}

impl<'de> Deserialize<'de> for OriginPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
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
