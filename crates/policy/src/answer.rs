//! The service's answer. Clients see its reason, so it is reduced to one short line of plain text.

use kinora_contract::limits::POLICY_REASON_CHARS_MAX;
use serde::Deserialize;

/// The reason if the service gives none.
const NO_REASON: &str = "This is against the policy of this service.";

/// The service's verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyVerdict {
    /// The request may become a task, or the result may be published.
    Allowed,
    /// It may not, for the given public reason.
    Refused(String),
}

/// Further fields are ignored.
#[derive(Deserialize)]
struct PolicyAnswer {
    allow: bool,
    reason: Option<String>,
}

/// Parses the body of an answer.
pub(crate) fn verdict(body: &[u8]) -> Result<PolicyVerdict, serde_json::Error> {
    let PolicyAnswer { allow, reason } = serde_json::from_slice(body)?;
    Ok(if allow {
        PolicyVerdict::Allowed
    } else {
        PolicyVerdict::Refused(public(&reason.unwrap_or_default()))
    })
}

/// `reason` without control characters, those that reverse text, and surrounding space, truncated to its limit.
fn public(reason: &str) -> String {
    let line: String = reason
        .chars()
        .map(|one| if is_hidden(one) { ' ' } else { one })
        .take(POLICY_REASON_CHARS_MAX)
        .collect();
    match line.trim() {
        "" => NO_REASON.to_owned(),
        line => line.to_owned(),
    }
}

fn is_hidden(one: char) -> bool {
    one.is_control() || matches!(one, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(reason: &str) -> PolicyVerdict {
        PolicyVerdict::Refused(reason.to_owned())
    }

    #[test]
    fn only_a_clear_answer_is_one() {
        for (body, expected) in [
            (r#"{"allow": true}"#, PolicyVerdict::Allowed),
            (
                r#"{"allow": true, "reason": "x", "score": 1}"#,
                PolicyVerdict::Allowed,
            ),
            (r#"{"allow": false}"#, refused(NO_REASON)),
            (r#"{"allow": false, "reason": null}"#, refused(NO_REASON)),
            (r#"{"allow": false, "reason": " \n "}"#, refused(NO_REASON)),
            (
                r#"{"allow": false, "reason": " No\tviolence.\u0000"}"#,
                refused("No violence."),
            ),
            (
                r#"{"allow": false, "reason": "\u001b[2JNo\u0007 \u009b1m\u202eviolence.\u2066"}"#,
                refused("[2JNo   1m violence."),
            ),
        ] {
            assert_eq!(verdict(body.as_bytes()).unwrap(), expected, "{body}");
        }
        for wrong in [
            "",
            "true",
            "{}",
            "[]",
            r#"{"allow": "true"}"#,
            r#"{"allow": 1}"#,
            r#"{"allow": null}"#,
            r#"{"allow": true} {"allow": false}"#,
            r#"{"allow": true, "allow": false}"#,
            r#"{"allow": false, "reason": 7}"#,
        ] {
            assert!(verdict(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_reason_is_one_bounded_line(reason in "(?s).{0,700}") {
            let body = serde_json::json!({"allow": false, "reason": reason}).to_string();
            let Ok(PolicyVerdict::Refused(public)) = verdict(body.as_bytes()) else {
                panic!("{reason:?}");
            };
            prop_assert!(!public.is_empty() && public.chars().count() <= POLICY_REASON_CHARS_MAX);
            prop_assert!(!public.contains(char::is_control));
        }
    }
}
