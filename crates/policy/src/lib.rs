//! Asks the operator's policy service whether a request may become a task, and whether a result may be published.
//!
//! 1. [`Options`]: where the service is, and what to do without an answer.
//! 2. [`Subject`] and [`Made`]: a question, as the service gets it.
//! 3. `exchange`: one bounded `POST`; `answer`: a verdict.
//! 4. [`Policy`]: the questions, counted.
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

pub use answer::Verdict;
pub use error::{NoAnswer, OptionsError};
pub use options::{Options, Otherwise};
pub use policy::Policy;
pub use question::{Made, Subject};
