//! The settings of the operator's policy service, and its client. Nothing is sent anywhere unless a
//! URL is set.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kinora_policy::{FallbackVerdict, PolicyOptions};
use serde::Deserialize;

use super::Config;
use super::secret::{check_token, token};
use crate::failure::Failure;
use crate::system::SystemClock;

/// Clients give up on submits that take longer.
const TIMEOUT_SECONDS_MAX: u32 = 60;

/// `[policy]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicySettings {
    url: String,
    token_file: PathBuf,
    token_variable: String,
    timeout_seconds: u32,
    on_timeout: OnTimeout,
}

/// Decision to take if the policy service does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnTimeout {
    /// Refuse everything.
    Refuse,
    /// Allow everything.
    Allow,
}

impl Config {
    /// The policy service, if one is configured. Reads its token.
    pub(crate) fn policy(&self) -> Result<Option<kinora_policy::PolicyService>, Failure> {
        self.policy_with(|name| std::env::var(name).ok())
    }

    fn policy_with(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<kinora_policy::PolicyService>, Failure> {
        let policy = &self.policy;
        if policy.url.is_empty() {
            return Ok(None);
        }
        let options = PolicyOptions {
            url: policy.url.clone(),
            token: policy.token(variable)?,
            timeout: Duration::from_secs(policy.timeout_seconds.into()),
            otherwise: match policy.on_timeout {
                OnTimeout::Refuse => FallbackVerdict::Refuse,
                OnTimeout::Allow => FallbackVerdict::Allow,
            },
        };
        kinora_policy::PolicyService::new(options, Arc::new(SystemClock))
            .map(Some)
            .map_err(|error| Failure::because("The section [policy] is invalid", error))
    }

    pub(super) fn check_policy(&self) -> Result<(), Failure> {
        let policy = &self.policy;
        if !(1..=TIMEOUT_SECONDS_MAX).contains(&policy.timeout_seconds) {
            return Err(Failure::new(format!(
                "The setting policy.timeout_seconds must be from 1 to {TIMEOUT_SECONDS_MAX}."
            )));
        }
        check_token("policy", &policy.token_file, &policy.token_variable)
    }
}

impl PolicySettings {
    fn token(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Option<String>, Failure> {
        token("policy", &self.token_file, &self.token_variable, variable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl FnOnce(&mut PolicySettings)) -> Config {
        let mut config = Config::defaults();
        config.policy.url = "http://10.0.0.7:9000/judge".to_owned();
        change(&mut config.policy);
        config
    }

    #[test]
    fn nobody_is_asked_unless_an_operator_wants_it() {
        assert!(Config::defaults().policy().unwrap().is_none());
        assert!(config(|_| {}).policy().unwrap().is_some());
    }

    #[test]
    fn what_is_wrong_with_the_section_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "marked-secret two\n").unwrap();
        type Change<'a> = &'a dyn Fn(&mut PolicySettings);
        let wrong: [(Change<'_>, &str); 6] = [
            (&|policy| policy.url = "policy".to_owned(), "http or https"),
            (
                &|policy| policy.token_variable = "NO_SUCH".to_owned(),
                "NO_SUCH",
            ),
            (&|policy| policy.token_file = "/no/such".into(), "/no/such"),
            (
                &|policy| policy.token_file.clone_from(&file),
                "not plain ASCII",
            ),
            (
                &|policy| policy.timeout_seconds = 0,
                "policy.timeout_seconds",
            ),
            (
                &|policy| {
                    policy.token_file = "/no/such".into();
                    policy.token_variable = "NO_SUCH".to_owned();
                },
                "not both",
            ),
        ];
        for (change, named) in wrong {
            let config = config(change);
            let checked = config
                .check_policy()
                .and_then(|()| config.policy_with(|_| None));
            let error = checked.unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
            assert!(!error.contains("marked-secret"), "{error}");
        }
    }

    #[test]
    fn a_token_comes_from_a_file_or_a_variable() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "one\n").unwrap();
        let from_file = config(|policy| policy.token_file = file).policy;
        assert_eq!(from_file.token(|_| None).unwrap().as_deref(), Some("one"));
        let named = config(|policy| policy.token_variable = "SECRET".to_owned()).policy;
        let told = named.token(|name| (name == "SECRET").then(|| "two".to_owned()));
        assert_eq!(told.unwrap().as_deref(), Some("two"));
    }
}
