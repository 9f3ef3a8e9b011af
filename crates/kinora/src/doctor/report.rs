//! The report of `kinora doctor`: one line per finding, with a remedy for each that is bad. A note
//! never fails the command.

use std::fmt::Write;

use crate::failure::Failure;

/// The result of one check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// A check that passed, with a description.
    Good(String),
    /// A check that passed with something that the operator should know.
    Note(String),
    /// A check that failed, with a remedy: the service would fail or break a promise.
    Bad(String),
}

impl From<Failure> for Finding {
    fn from(failure: Failure) -> Self {
        Self::Bad(failure.to_string())
    }
}

/// One line per finding.
pub(super) fn report(findings: &[(&str, Finding)]) -> String {
    let mut text = String::new();
    for (what, finding) in findings {
        let (mark, words) = match finding {
            Finding::Good(words) => ("ok  ", words),
            Finding::Note(words) => ("note", words),
            Finding::Bad(words) => ("BAD ", words),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{mark}  {what:<17}  {words}");
    }
    text
}

/// The error of a run with bad findings.
pub(super) fn summary(bad: usize) -> Failure {
    let things = if bad == 1 {
        "thing needs"
    } else {
        "things need"
    };
    Failure::new(format!("{bad} {things} attention, see above"))
}
