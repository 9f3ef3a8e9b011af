//! Validates the parts of a new key, and generates the key. Values that could never work are
//! refused with an explanation.

use kinora_contract::KeyText;
use kinora_store::{ApiKey, Budget, KeyScope, NewKey};

use crate::cli::CreateArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::date;
use crate::system::{random, random_letters};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// Maximum lifetime of a key: a hundred years. More is a typo.
const EXPIRES_IN_DAYS_MAX: u32 = 36_500;
/// Lifetime of a browser's key: a tab is seldom open for longer.
const BROWSER_DAYS: u64 = 30;

/// The valid parts of a new key.
#[derive(Debug)]
pub(crate) struct NewKeyParts {
    name: String,
    project: String,
    scopes: Vec<KeyScope>,
    models: Option<Vec<String>>,
    lives_ms: Option<u64>,
    requests_per_minute: Option<u32>,
    unfinished_max: Option<u32>,
    budget: Budget,
}

impl NewKeyParts {
    /// The key that a first start creates.
    pub(crate) fn for_first_start() -> Self {
        Self {
            name: "first".to_owned(),
            project: "default".to_owned(),
            scopes: KeyScope::VIDEOS.to_vec(),
            models: None,
            lives_ms: None,
            requests_per_minute: None,
            unfinished_max: None,
            budget: Budget::default(),
        }
    }

    /// The key of a browser that signs in by a link. Several may be usable, so the name has the time.
    pub(crate) fn for_browser(now_ms: u64) -> Self {
        Self {
            name: format!("studio {}", date(now_ms)),
            lives_ms: Some(BROWSER_DAYS * DAY_MS),
            ..Self::for_first_start()
        }
    }

    /// A client's key of a project that has its name.
    #[cfg(feature = "test-faults")]
    pub(crate) fn for_project(project: &str) -> Self {
        Self {
            name: project.to_owned(),
            project: project.to_owned(),
            ..Self::for_first_start()
        }
    }

    /// The parts of another key. If that one expires, the new key has the same lifetime.
    pub(super) fn from_key(old: &ApiKey) -> Self {
        let old = old.key.clone();
        Self {
            lives_ms: old
                .expires_at_ms
                .map(|end| end.saturating_sub(old.created_at_ms)),
            name: old.name,
            project: old.project,
            scopes: old.scopes,
            models: old.models,
            requests_per_minute: old.requests_per_minute,
            unfinished_max: old.unfinished_max,
            budget: old.budget,
        }
    }

    /// # Errors
    /// If a value is empty, unknown, or could never be of use.
    pub(super) fn from_args(args: &CreateArgs, config: &Config) -> Result<Self, Failure> {
        let (name, project) = (args.name.trim(), args.project.trim());
        if name.is_empty() || project.is_empty() {
            return Err(Failure::new("A key needs a name and a project."));
        }
        match args.expires_in_days {
            Some(0) => {
                return Err(Failure::new(
                    "A key that expires in 0 days would never work; give at least 1 day.",
                ));
            }
            Some(EXPIRES_IN_DAYS_MAX..) => {
                return Err(Failure::new(format!(
                    "A key cannot live for {EXPIRES_IN_DAYS_MAX} days or more; leave out \
                     --expires-in-days for one that never expires."
                )));
            }
            _ => {}
        }
        Ok(Self {
            name: name.to_owned(),
            project: project.to_owned(),
            scopes: scopes(args)?,
            models: models(&args.models, config)?,
            lives_ms: args.expires_in_days.map(|days| u64::from(days) * DAY_MS),
            requests_per_minute: args.requests_per_minute,
            unfinished_max: args.unfinished_max,
            budget: Budget {
                per_day: args.budget_per_day,
                per_month: args.budget_per_month,
            },
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The key's text, and the record to store.
    pub(crate) fn generate(self, now_ms: u64) -> Result<(KeyText, NewKey), Failure> {
        let text = KeyText::from_random(&random()?)
            .ok_or_else(|| Failure::new("The random bytes were unusable; try again."))?;
        let key = NewKey {
            id: format!("key_{}", random_letters()?),
            sha256: text.sha256(),
            name: self.name,
            project: self.project,
            scopes: self.scopes,
            models: self.models,
            requests_per_minute: self.requests_per_minute,
            unfinished_max: self.unfinished_max,
            budget: self.budget,
            created_at_ms: now_ms,
            expires_at_ms: self.lives_ms.map(|lives_ms| now_ms + lives_ms),
        };
        Ok((text, key))
    }
}

/// Parses scopes; without names, all on videos. An operator's key has one or two more.
fn scopes(args: &CreateArgs) -> Result<Vec<KeyScope>, Failure> {
    let mut scopes = Vec::new();
    if args.scopes.is_empty() {
        scopes.extend(KeyScope::VIDEOS);
    }
    for name in &args.scopes {
        // An operator's scopes come from flags of their own, so that they are never granted by a list
        // that somebody copied.
        let known = KeyScope::from_name(name).filter(|scope| KeyScope::VIDEOS.contains(scope));
        let scope = known.ok_or_else(|| {
            Failure::new(format!(
                "There is no scope '{}'; use videos:write or videos:read.",
                name.escape_debug()
            ))
        })?;
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    if args.operator || args.operator_write {
        scopes.push(KeyScope::Operations);
    }
    scopes.extend(args.operator_write.then_some(KeyScope::Control));
    Ok(scopes)
}

/// The ids of models, given by id or alias; without names: all, including those of later
/// configurations.
fn models(names: &[String], config: &Config) -> Result<Option<Vec<String>>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for name in names {
        let id = config.model_id(name)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(Some(ids).filter(|ids| !ids.is_empty()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, CliCommand, KeysCommand};

    fn parts(flags: &[&str]) -> Result<NewKeyParts, String> {
        let words = [&["kinora", "keys", "create"], flags].concat();
        let CliCommand::Keys(KeysCommand::Create(args)) =
            Cli::try_parse_from(words).unwrap().command
        else {
            unreachable!()
        };
        let mut config = Config::defaults();
        config.models[1].aliases = vec!["house".to_owned()];
        NewKeyParts::from_args(&args, &config).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_key_that_could_never_work_is_refused_with_a_sentence() {
        for (flags, named) in [
            (&["--name", " "][..], "needs a name"),
            (&["--name", "x", "--project", ""], "a project"),
            (&["--name", "x", "--scopes", "videos:own"], "videos:own"),
            (
                &["--name", "x", "--scopes", "operations:read"],
                "videos:read",
            ),
            (
                &["--name", "x", "--models", "kinora-z9"],
                "kinora-a1, kinora-b1",
            ),
            (
                &["--name", "x", "--models", "kinora-a1,\u{1b}[2J"],
                r"\u{1b}",
            ),
            (&["--name", "x", "--expires-in-days", "0"], "never work"),
            (&["--name", "x", "--expires-in-days", "36500"], "leave out"),
            (
                &["--name", "x", "--expires-in-days", "4294967295"],
                "leave out",
            ),
        ] {
            let error = parts(flags).unwrap_err();
            assert!(error.contains(named), "{flags:?}: {error}");
        }
    }

    #[test]
    fn models_and_scopes_are_kept_once_by_their_own_names() {
        let parts = parts(&[
            "--name",
            " web ",
            "--models",
            "house,kinora-b1",
            "--scopes",
            "videos:read,videos:read",
            "--expires-in-days",
            "36499",
        ]);
        let (_, key) = parts.unwrap().generate(1000).unwrap();
        assert_eq!(key.name, "web");
        assert_eq!(key.models, Some(vec!["kinora-b1".to_owned()]));
        assert_eq!(key.scopes, [KeyScope::Read]);
        assert_eq!(key.expires_at_ms, Some(1000 + 36_499 * DAY_MS));
    }

    #[test]
    fn an_operator_s_key_may_do_all_that_others_may() {
        let scopes = |flags: &[&str]| {
            let (_, key) = parts(flags).unwrap().generate(1000).unwrap();
            key.scopes
        };
        let all = [KeyScope::Write, KeyScope::Read, KeyScope::Operations];
        assert_eq!(scopes(&["--name", "ops", "--operator"]), all);
        let with_write = [&all[..], &[KeyScope::Control]].concat();
        let flags = ["--name", "ops", "--operator-write"];
        assert_eq!(scopes(&flags), with_write);
        let both = ["--name", "ops", "--operator", "--operator-write"];
        assert_eq!(scopes(&both), with_write);
        let flags = ["--name", "ops", "--operator", "--scopes", "videos:read"];
        assert_eq!(scopes(&flags), [KeyScope::Read, KeyScope::Operations]);
        assert_eq!(scopes(&["--name", "web"]), KeyScope::VIDEOS);
    }

    #[test]
    fn a_rotated_key_has_all_of_the_old_one_and_lives_as_long() {
        let flags = ["--name", "a", "--project", "p", "--models", "kinora-a1"];
        let more = ["--expires-in-days", "30", "--requests-per-minute", "9"];
        let money = ["--budget-per-day", "10", "--budget-per-month", "99.5"];
        let (_, key) = parts(&[&flags[..], &more, &money].concat())
            .unwrap()
            .generate(1000)
            .unwrap();
        let old = ApiKey {
            key: key.clone(),
            revoked_at_ms: None,
            last_used_at_ms: None,
        };
        let (_, new) = NewKeyParts::from_key(&old).generate(5000).unwrap();
        assert!(new.id != key.id && new.sha256 != key.sha256);
        assert_eq!(new.expires_at_ms, Some(5000 + 30 * DAY_MS));
        let expected = NewKey {
            id: new.id.clone(),
            sha256: new.sha256,
            created_at_ms: 5000,
            expires_at_ms: new.expires_at_ms,
            ..key
        };
        assert_eq!(format!("{new:?}"), format!("{expected:?}"));
    }
}
