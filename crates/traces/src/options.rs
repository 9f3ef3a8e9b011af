//! The operator's settings.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use url::Url;

/// Path of the collector's endpoint for traces, below that for all signals.
const PATH: &str = "v1/traces";

/// The location of the collector, and the data that it gets.
#[derive(Clone)]
pub struct TraceOptions {
    /// The URL of its endpoint for OTLP over HTTP; `/v1/traces` is added.
    pub endpoint: String,
    /// Headers of each request, in the format of `OTEL_EXPORTER_OTLP_HEADERS`: `name=value` with
    /// percent-encoded values, separated by commas or line breaks. Never logged.
    pub headers: String,
    /// Share of the tasks whose traces are recorded, from 0 to 1.
    pub ratio: f64,
    /// `service.name` of the spans.
    pub service: String,
    /// `service.instance.id` of the spans, unique for each process.
    pub instance: String,
    /// `service.version` of the spans.
    pub version: &'static str,
}

/// Why options are invalid.
#[derive(Debug, thiserror::Error)]
pub enum TraceOptionsError {
    /// Not `http` or `https`, without a host, or with a user, a query or a fragment.
    #[error("'{0}' is not an http or https URL without user, query and fragment")]
    Url(String),
    /// Not in the format of [`TraceOptions::headers`]. The message omits their contents.
    #[error("header {0} is not of the form name=value")]
    Header(usize),
    /// Not from 0 to 1.
    #[error("sampling_ratio must be between 0 and 1, got {0}")]
    Ratio(f64),
    /// The library of TLS refused its settings.
    #[error("TLS cannot be used: {0}")]
    Tls(#[from] kinora_http::RootsError),
}

impl TraceOptions {
    /// The URL that gets the spans.
    pub(crate) fn url(&self) -> Result<Url, TraceOptionsError> {
        let plain = Url::parse(&self.endpoint).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        });
        let mut url = plain.ok_or_else(|| TraceOptionsError::Url(without_user(&self.endpoint)))?;
        let path = format!("{}/{PATH}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Ok(url)
    }

    /// The headers, marked as sensitive.
    pub(crate) fn header_map(&self) -> Result<HeaderMap, TraceOptionsError> {
        let mut headers = HeaderMap::new();
        let parts = self.headers.split([',', '\n']).map(str::trim);
        // Errors name the position of a header, because its text may be a secret.
        for (part, number) in parts.filter(|part| !part.is_empty()).zip(1..) {
            let (name, value) = header(part).ok_or(TraceOptionsError::Header(number))?;
            headers.append(name, value);
        }
        Ok(headers)
    }

    pub(crate) fn checked_ratio(&self) -> Result<f64, TraceOptionsError> {
        if !(0.0..=1.0).contains(&self.ratio) {
            return Err(TraceOptionsError::Ratio(self.ratio));
        }
        Ok(self.ratio)
    }
}

fn header(text: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = text.split_once('=')?;
    let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
    let mut value = HeaderValue::try_from(&*value).ok()?;
    value.set_sensitive(true);
    Some((HeaderName::try_from(name.trim()).ok()?, value))
}

/// `url` up to the part that may contain a secret.
fn without_user(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.rsplit_once('@') {
        Some((_, after)) => format!("...@{after}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(endpoint: &str, headers: &str) -> TraceOptions {
        TraceOptions {
            endpoint: endpoint.to_owned(),
            headers: headers.to_owned(),
            ratio: 1.0,
            service: "kinora".to_owned(),
            instance: "test".to_owned(),
            version: "0",
        }
    }

    #[test]
    fn traces_have_a_path_below_the_endpoint() {
        for (endpoint, url) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("https://host/otlp", "https://host/otlp/v1/traces"),
            ("https://host/otlp/", "https://host/otlp/v1/traces"),
        ] {
            assert_eq!(options(endpoint, "").url().unwrap().as_str(), url);
        }
        for wrong in [
            "collector:4318",
            "grpc://collector",
            "http://marked-secret@host",
            "http://a:marked-secret@host/",
            "http://host/?key=marked-secret",
            "http://host/#marked-secret",
        ] {
            let error = options(wrong, "").url().unwrap_err().to_string();
            assert!(!error.contains("marked-secret"), "{error}");
        }
    }

    #[test]
    fn headers_are_as_the_standard_variable_has_them() {
        let text = "authorization=Bearer%20marked-secret, x-scope=a=b\nx-last=1\n";
        let headers = options("http://host", text).header_map().unwrap();
        assert_eq!(headers["authorization"], "Bearer marked-secret");
        assert_eq!(
            (&headers["x-scope"], &headers["x-last"]),
            (&"a=b".parse().unwrap(), &"1".parse().unwrap())
        );
        assert!(!format!("{headers:?}").contains("marked-secret"));
        for wrong in ["marked-secret", "a b=marked-secret", "a=marked-secret%0a"] {
            let error = options("http://host", wrong).header_map().unwrap_err();
            assert!(!error.to_string().contains("marked-secret"), "{error}");
        }
    }

    #[test]
    fn a_share_is_from_none_to_all() {
        for wrong in [-0.1, 1.1, f64::NAN] {
            let options = TraceOptions {
                ratio: wrong,
                ..options("http://host", "")
            };
            assert!(options.checked_ratio().is_err(), "{wrong}");
        }
    }
}
