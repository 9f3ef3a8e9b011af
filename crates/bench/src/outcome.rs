//! What every part of a benchmark returns: any error ends the run.

use std::error::Error;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
