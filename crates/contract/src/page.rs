//! Parses the query of a list: `after`, `limit`, `order`, and of files also `purpose`; and that of usage: `since` and
//! `until`. Refuses any other parameter by name, and a parameter that was sent twice.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::error::{ErrorCode, RequestRefusal};
use crate::id::{FileId, TaskId};
use crate::limits::{PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, PAGE_LIMIT_MIN};
use crate::time::parse_iso_day;

/// A valid list query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// Only tasks after this one, in the order.
    pub after: Option<TaskId>,
    /// Maximum number of tasks.
    pub limit: usize,
    /// Oldest first instead of newest first.
    pub ascending: bool,
}

/// A valid query for usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    since: Option<u64>,
    until: Option<u64>,
}

/// A valid query for a list of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePageQuery {
    /// Only files after this one, in the order.
    pub after: Option<FileId>,
    /// Maximum number of files.
    pub limit: usize,
    /// Oldest first instead of newest first.
    pub ascending: bool,
    /// Only files with this purpose.
    pub purpose: Option<String>,
}

impl PageQuery {
    /// Validates the decoded pairs of a query string.
    ///
    /// # Errors
    /// `unknown_parameter` or `invalid_value`, with the name as `param`.
    pub fn parse<'a>(
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, RequestRefusal> {
        let sent = read(pairs, &["after", "limit", "order"])?;
        Ok(Self {
            after: after(&sent, "task")?,
            limit: limit(&sent)?,
            ascending: ascending(&sent)?,
        })
    }
}

/// Number of days of usage by default, with the last one.
const USAGE_DAYS_DEFAULT: u64 = 30;

impl UsageQuery {
    /// Validates the decoded pairs of a query string.
    ///
    /// # Errors
    /// As [`PageQuery::parse`].
    pub fn parse<'a>(
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, RequestRefusal> {
        let sent = read(pairs, &["since", "until"])?;
        let day = |name: &str| {
            let text = sent.get(name).copied();
            let day = text.map(|text| parse_iso_day(text).ok_or(text));
            day.transpose()
                .map_err(|_| invalid(name, format!("'{name}' must be a day such as 2026-11-01.")))
        };
        Ok(Self {
            since: day("since")?,
            until: day("until")?,
        })
    }

    /// The days, in days since 1970, at most `days_max`.
    ///
    /// # Errors
    /// `invalid_value` for a period that is too long or ends before it begins.
    pub fn days(self, today: u64, days_max: u64) -> Result<RangeInclusive<u64>, RequestRefusal> {
        let until = self.until.unwrap_or(today);
        let since = self
            .since
            .unwrap_or(until.saturating_sub(USAGE_DAYS_DEFAULT - 1));
        let is_good = since <= until && until - since < days_max;
        is_good.then_some(since..=until).ok_or_else(|| {
            let message = format!(
                "'since' must be at most 'until', and at most {} days before it.",
                days_max - 1
            );
            invalid("since", message)
        })
    }
}

impl FilePageQuery {
    /// Validates the decoded pairs of a query string.
    ///
    /// # Errors
    /// As [`PageQuery::parse`].
    pub fn parse<'a>(
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, RequestRefusal> {
        let sent = read(pairs, &["after", "limit", "order", "purpose"])?;
        Ok(Self {
            after: after(&sent, "file")?,
            limit: limit(&sent)?,
            ascending: ascending(&sent)?,
            purpose: sent.get("purpose").map(|text| (*text).to_owned()),
        })
    }
}

type SentPairs<'a> = BTreeMap<&'a str, &'a str>;

fn read<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
    names: &[&str],
) -> Result<SentPairs<'a>, RequestRefusal> {
    let mut sent = BTreeMap::new();
    for (name, value) in pairs {
        if !names.contains(&name) {
            let shown: String = name.chars().take(64).collect();
            let names = names.join(", ");
            let message = format!("Unknown parameter: '{shown}'. A list takes {names}.");
            return Err(RequestRefusal::for_param(
                ErrorCode::UnknownParameter,
                shown,
                message,
            ));
        }
        // Which of two values a server takes differs between servers; refuse instead of choosing.
        if sent.insert(name, value).is_some() {
            return Err(invalid(name, format!("'{name}' was sent more than once.")));
        }
    }
    Ok(sent)
}

fn invalid(param: &str, message: impl Into<String>) -> RequestRefusal {
    RequestRefusal::for_param(ErrorCode::InvalidValue, param, message)
}

fn after<T: FromStr>(sent: &SentPairs<'_>, what: &str) -> Result<Option<T>, RequestRefusal> {
    let id = sent.get("after").map(|text| text.parse());
    id.transpose()
        .map_err(|_| invalid("after", format!("'after' must be the id of a {what}.")))
}

fn limit(sent: &SentPairs<'_>) -> Result<usize, RequestRefusal> {
    let Some(text) = sent.get("limit") else {
        return Ok(PAGE_LIMIT_DEFAULT);
    };
    let range = PAGE_LIMIT_MIN..=PAGE_LIMIT_MAX;
    let number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse::<usize>().ok());
    number
        .flatten()
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            invalid(
                "limit",
                format!("'limit' must be from {PAGE_LIMIT_MIN} to {PAGE_LIMIT_MAX}."),
            )
        })
}

fn ascending(sent: &SentPairs<'_>) -> Result<bool, RequestRefusal> {
    match sent.get("order").copied() {
        Some("asc") => Ok(true),
        None | Some("desc") => Ok(false),
        Some(_) => Err(invalid("order", "'order' must be 'asc' or 'desc'.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<PageQuery, (ErrorCode, Option<String>)> {
        PageQuery::parse(pairs.iter().copied()).map_err(|refusal| (refusal.code, refusal.param))
    }

    #[test]
    fn defaults_are_the_newest_twenty() {
        assert_eq!(
            parse(&[]),
            Ok(PageQuery {
                after: None,
                limit: 20,
                ascending: false
            })
        );
    }

    #[test]
    fn usage_is_that_of_thirty_days_or_of_named_ones() {
        let days = |pairs: &[(&str, &str)]| {
            let query = UsageQuery::parse(pairs.iter().copied())?;
            query.days(20_786, 366)
        };
        assert_eq!(days(&[]).unwrap(), 20_757..=20_786);
        assert_eq!(days(&[("until", "1970-01-02")]).unwrap(), 0..=1);
        let both = |since, until| days(&[("since", since), ("until", until)]);
        assert_eq!(both("1971-01-01", "1972-01-01").unwrap().count(), 366);
        for (pairs, param) in [
            (both("1971-01-01", "1972-01-02"), "since"),
            (both("1971-01-02", "1971-01-01"), "since"),
            (both("yesterday", "1971-01-01"), "since"),
            (both("1971-01-01", "1971-1-1"), "until"),
            (days(&[("since", "9999-12-31")]), "since"),
            (days(&[("from", "1971-01-01")]), "from"),
        ] {
            assert_eq!(pairs.unwrap_err().param.as_deref(), Some(param));
        }
    }

    #[test]
    fn limits_hold_at_their_ends_and_past_them() {
        for good in ["1", "100"] {
            assert!(parse(&[("limit", good)]).is_ok(), "{good}");
        }
        for wrong in ["0", "101", "-1", "", "1e1", "+5", "99999999999999999999999"] {
            let error = parse(&[("limit", wrong)]).unwrap_err();
            assert_eq!(
                error,
                (ErrorCode::InvalidValue, Some("limit".to_owned())),
                "{wrong}"
            );
        }
    }

    #[test]
    fn wrong_names_values_and_repeats_are_refused() {
        for (pairs, code, param) in [
            (&[("page", "2")][..], ErrorCode::UnknownParameter, "page"),
            (&[("order", "newest")], ErrorCode::InvalidValue, "order"),
            (&[("after", "video_x")], ErrorCode::InvalidValue, "after"),
            (
                &[("limit", "1"), ("limit", "1")],
                ErrorCode::InvalidValue,
                "limit",
            ),
        ] {
            assert_eq!(parse(pairs), Err((code, Some(param.to_owned()))));
        }
    }
}
