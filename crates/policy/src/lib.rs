//! Asks the operator's policy service whether a request may become a task, and whether a result may be published.
//!
//! 1. [`PolicyOptions`]: where the service is, and what to do without an answer.
//! 2. [`QuestionSubject`] and [`ResultSummary`]: a question, as the service gets it.
//! 3. `exchange`: one bounded `POST`; `answer`: a verdict.
//! 4. [`PolicyService`]: the questions, counted.
//!
//! It follows no redirect, uses no proxy, and keeps no answer. How many questions are asked at a time is up to its
//! callers.

#![forbid(unsafe_code)]

mod answer;
mod error;
mod exchange;
mod options;
mod policy;
mod question;

pub use answer::PolicyVerdict;
pub use error::{PolicyError, PolicyOptionsError};
pub use options::{FallbackVerdict, PolicyOptions};
pub use policy::PolicyService;
pub use question::{QuestionSubject, ResultSummary};
