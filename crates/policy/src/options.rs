//! The operator's settings.

use std::time::Duration;

use hyper::header::HeaderValue;
use url::Url;

use crate::error::PolicyOptionsError;

/// The location of the policy service, and how to ask it.
#[derive(Clone)]
pub struct PolicyOptions {
    /// The URL that gets every question.
    pub url: String,
    /// The token that the service expects. Never logged.
    pub token: Option<String>,
    /// Maximum time of a question, from the name's resolution to the last byte of the answer.
    pub timeout: Duration,
    /// What to do with a request or result if there is no answer.
    pub otherwise: FallbackVerdict,
}

/// What to do without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackVerdict {
    /// Nothing passes unchecked.
    Refuse,
    /// Everything passes.
    Allow,
}

impl PolicyOptions {
    /// The parsed URL.
    pub(crate) fn parsed_url(&self) -> Result<Url, PolicyOptionsError> {
        let plain = Url::parse(&self.url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.fragment().is_none()
        });
        plain.ok_or_else(|| PolicyOptionsError::Url(self.url.clone()))
    }

    /// The value of `Authorization`, marked as sensitive.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, PolicyOptionsError> {
        let Some(token) = &self.token else {
            return Ok(None);
        };
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(PolicyOptionsError::Token);
        }
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let mut value = value.map_err(|_| PolicyOptionsError::Token)?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str, token: Option<&str>) -> PolicyOptions {
        PolicyOptions {
            url: url.to_owned(),
            token: token.map(str::to_owned),
            timeout: Duration::from_secs(1),
            otherwise: FallbackVerdict::Refuse,
        }
    }

    #[test]
    fn urls_of_private_addresses_are_taken_and_secrets_in_them_are_not() {
        for good in ["http://10.0.0.7:9000/judge?v=1", "https://policy.internal"] {
            options(good, None).parsed_url().unwrap();
        }
        for wrong in [
            "",
            "policy",
            "ftp://host/",
            "http://a:b@host/",
            "http://host/#x",
            "unix:/run/policy",
        ] {
            assert!(options(wrong, None).parsed_url().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_a_header_that_nobody_sees() {
        let header = options("http://host", Some("marked-secret")).authorization();
        let header = header.unwrap().unwrap();
        assert_eq!(header, "Bearer marked-secret");
        assert!(!format!("{header:?}").contains("marked-secret"));
        assert_eq!(options("http://host", None).authorization().unwrap(), None);
        for wrong in ["", "two words", "a\nb", "gr\u{fc}n"] {
            assert!(options("http://host", Some(wrong)).authorization().is_err());
        }
    }
}
