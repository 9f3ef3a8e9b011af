//! CORS: the origins whose pages may call this service, none unless configured. Pages must send the
//! key in a header themselves; cookies are never used.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// How long browsers may cache a preflight answer, in seconds.
const REMEMBERED_SECONDS: u64 = 600;

/// The origins whose pages may call this service.
#[derive(Clone, Debug, Default)]
pub struct CorsPolicy {
    origins: Vec<HeaderValue>,
    any: bool,
}

/// The text is not an origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an origin, as in https://app.example.com, nor \"*\"")]
pub struct BadOrigin(String);

impl CorsPolicy {
    /// Allows pages of `origins`; `*` allows all.
    ///
    /// # Errors
    /// [`BadOrigin`] for a text that no browser would send as an origin.
    pub fn new<'o>(origins: impl IntoIterator<Item = &'o str>) -> Result<Self, BadOrigin> {
        let mut cors = Self::default();
        for text in origins {
            if text == "*" {
                cors.any = true;
            } else {
                let value = origin(text).ok_or_else(|| BadOrigin(text.to_owned()))?;
                cors.origins.push(value);
            }
        }
        Ok(cors)
    }

    /// The origin to grant, for [`Self::grant`].
    pub(crate) fn granted(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        if self.any {
            return Some(HeaderValue::from_static("*"));
        }
        self.origins.contains(origin).then(|| origin.clone())
    }

    /// Answers a preflight request from an allowed origin; `None` for anything else.
    pub(crate) fn preflight(&self, request: &Request<Body>) -> Option<Response> {
        let headers = request.headers();
        if request.method() != Method::OPTIONS
            || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        {
            return None;
        }
        self.granted(headers)?;
        let mut response = StatusCode::NO_CONTENT.into_response();
        let out = response.headers_mut();
        out.insert(
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, DELETE"),
        );
        // SDKs add their own headers; none of them grants access here.
        if let Some(asked) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            out.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        }
        out.insert(
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from(REMEMBERED_SECONDS),
        );
        Some(response)
    }

    /// Writes the CORS headers of an answer; `asked` comes from [`Self::granted`].
    pub(crate) fn grant(&self, asked: Option<HeaderValue>, headers: &mut HeaderMap) {
        if self.origins.is_empty() && !self.any {
            return;
        }
        // Even without a grant: a cache must not give this answer to a page of another origin.
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = asked {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(
                header::ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static("*"),
            );
        }
    }
}

/// A scheme, a host and an optional port, in lower case as browsers send them.
fn origin(text: &str) -> Option<HeaderValue> {
    let (scheme, host) = text.split_once("://")?;
    let named = |part: &str, others: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || others.contains(c))
    };
    let fits = named(scheme, "+-.") && named(host, "-._:[]");
    fits.then(|| HeaderValue::from_str(text).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_no_path_and_no_capitals() {
        for good in [
            "https://app.example.com",
            "http://localhost:3000",
            "http://[::1]:8080",
            "chrome-extension://abc",
            "*",
        ] {
            assert!(CorsPolicy::new([good]).is_ok(), "{good}");
        }
        for bad in [
            "",
            "app.example.com",
            "https://",
            "https://App.example.com",
            "https://app.example.com/",
            "https://a,https://b",
            "https://a b",
            "null",
        ] {
            assert_eq!(
                CorsPolicy::new([bad]).unwrap_err(),
                BadOrigin(bad.to_owned())
            );
        }
    }

    fn asked(method: &str, origin: &str) -> Request<Body> {
        Request::builder()
            .method(method)
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization, x-mine")
            .body(Body::empty())
            .unwrap()
    }

    #[test]
    fn only_a_configured_origin_is_granted_anything() {
        let cors = CorsPolicy::new(["https://a.example"]).unwrap();
        let answer = cors
            .preflight(&asked("OPTIONS", "https://a.example"))
            .unwrap();
        assert_eq!(answer.status(), 204);
        assert_eq!(
            answer.headers()["access-control-allow-headers"],
            "authorization, x-mine"
        );
        assert!(
            cors.preflight(&asked("OPTIONS", "https://b.example"))
                .is_none()
        );
        assert!(cors.preflight(&asked("GET", "https://a.example")).is_none());
        let off = CorsPolicy::default();
        assert!(
            off.preflight(&asked("OPTIONS", "https://a.example"))
                .is_none()
        );
        let any = CorsPolicy::new(["*"]).unwrap();
        let request = asked("GET", "https://b.example");
        assert_eq!(any.granted(request.headers()).unwrap(), "*");
        assert_eq!(cors.granted(request.headers()), None);
    }
}
