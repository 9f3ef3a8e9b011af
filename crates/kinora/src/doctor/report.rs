//! The report of `kinora doctor`: one line per finding, with a remedy for each that is bad.

use std::fmt::Write;

use crate::failure::Failure;

/// A finding.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// As it should be; a description.
    Good(String),
    /// It works, but the operator should know this.
    Note(String),
    /// The service would fail, or could not keep its promises; a remedy.
    Bad(String),
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
