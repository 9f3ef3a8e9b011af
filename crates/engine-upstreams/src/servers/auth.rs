//! How a key is sent: in which header, in which words, and whether a token made from it takes its place.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::json;
use sha2::Sha256;

/// How long a token is valid, in seconds.
const TOKEN_SECONDS: u64 = 1800;
/// A token is valid from so many seconds ago on, for servers whose clock is behind.
const TOKEN_LEEWAY: u64 = 5;

/// The header with a key, and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthScheme {
    pub(crate) header: HeaderName,
    /// Text in which [`AuthScheme::KEY`] stands for the key.
    pub(crate) value: String,
    pub(crate) signer: Option<KeySigner>,
}

/// What makes a token from a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum KeySigner {
    /// The key is `ACCESS:SECRET`; a JSON Web Token (RFC 7519) with the claims `iss`, `exp` and `nbf`, signed with
    /// HMAC-SHA256.
    #[serde(rename = "jwt-hs256")]
    JwtHs256,
}

impl Default for AuthScheme {
    fn default() -> Self {
        Self {
            header: AUTHORIZATION,
            value: format!("Bearer {}", Self::KEY),
            signer: None,
        }
    }
}

impl AuthScheme {
    /// Stands for the key; no header can have it.
    pub(crate) const KEY: &str = "\0";

    /// The header with this key, at `now_ms` since 1970; marked as sensitive. `None`: the key fits into no header,
    /// or cannot be split for its signer.
    pub(crate) fn header(&self, key: &str, now_ms: u64) -> Option<(HeaderName, HeaderValue)> {
        let value = match self.signer {
            None => self.value.replace(Self::KEY, key),
            Some(KeySigner::JwtHs256) => self.value.replace(Self::KEY, &token(key, now_ms / 1000)?),
        };
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((self.header.clone(), value))
    }
}

fn token(key: &str, now: u64) -> Option<String> {
    let (access, secret) = key.split_once(':')?;
    let head = json!({"alg": "HS256", "typ": "JWT"});
    let claims = json!({
        "iss": access, "exp": now + TOKEN_SECONDS, "nbf": now.saturating_sub(TOKEN_LEEWAY),
    });
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(head), part(claims));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(signed.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    Some(format!("{signed}.{signature}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_where_the_scheme_says() {
        let scheme = AuthScheme::default();
        let (name, value) = scheme.header("k", 0).unwrap();
        assert_eq!(
            (name.as_str(), value.to_str().unwrap()),
            ("authorization", "Bearer k")
        );
        assert!(value.is_sensitive());
        let scheme = AuthScheme {
            header: HeaderName::from_static("x-goog-api-key"),
            value: AuthScheme::KEY.to_owned(),
            signer: None,
        };
        let (name, value) = scheme.header("k", 0).unwrap();
        assert_eq!(
            (name.as_str(), value.to_str().unwrap()),
            ("x-goog-api-key", "k")
        );
    }

    /// The signature was computed with Python's `hmac`.
    #[test]
    fn a_token_is_one_that_others_verify() {
        let token = token("ak:sk", 1_000).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let decode = |part| String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        assert_eq!(decode(parts[0]), r#"{"alg":"HS256","typ":"JWT"}"#);
        assert_eq!(decode(parts[1]), r#"{"exp":2800,"iss":"ak","nbf":995}"#);
        assert_eq!(parts[2], "kx2rtiBVey7LQ4JwUnv5723N5TaS-NLB3dtz18YJD-o");
        assert_eq!(super::token("no-colon", 0), None);
    }
}
