//! A task's position in a distributed trace, in the format of the W3C Trace Context header
//! `traceparent` (<https://www.w3.org/TR/trace-context/>). It contains nothing about the task
//! itself.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
use std::str::FromStr;

/// The flag for a recorded trace.
const SAMPLED: u128 = 1;
/// The version that the specification forbids.
const VERSION_INVALID: u128 = 0xff;

/// A span of a trace, as the parent of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: NonZeroU128,
    /// The span in it.
    pub span: NonZeroU64,
    /// Whether the trace is recorded.
    pub sampled: bool,
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span)
    }
}

/// The text is not the value of a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a trace context")]
pub struct TraceSyntax;

impl FromStr for TraceContext {
    type Err = TraceSyntax;

    /// Later versions may add fields, which are ignored.
    fn from_str(text: &str) -> Result<Self, TraceSyntax> {
        let mut fields = text.split('-');
        let mut next = |digits| number(fields.next(), digits).ok_or(TraceSyntax);
        let (version, trace) = (next(2)?, next(32)?);
        let (span, flags) = (next(16)?, next(2)?);
        let has_more = fields.next().is_some();
        // A parser must accept later versions as far as it knows them; only this version's length
        // is fixed (https://www.w3.org/TR/trace-context/#versioning-of-traceparent).
        if version == VERSION_INVALID || (version == 0 && has_more) {
            return Err(TraceSyntax);
        }
        let span = u64::try_from(span).ok().and_then(NonZeroU64::new);
        Ok(Self {
            trace: NonZeroU128::new(trace).ok_or(TraceSyntax)?,
            span: span.ok_or(TraceSyntax)?,
            sampled: flags & SAMPLED != 0,
        })
    }
}

/// Parses a field of exactly `digits` lower-case hexadecimal digits.
fn number(field: Option<&str>, digits: usize) -> Option<u128> {
    let field = field.filter(|field| field.len() == digits)?;
    if !field
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    {
        return None;
    }
    // The check above matters: `from_str_radix` takes a sign and upper-case digits too.
    u128::from_str_radix(field, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_is_read_and_written_back() {
        let read: TraceContext = EXAMPLE.parse().unwrap();
        assert_eq!(read.trace.get(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(read.span.get(), 0x00f0_67aa_0ba9_02b7);
        assert!(read.sampled);
        assert_eq!(read.to_string(), EXAMPLE);
        let unsampled = EXAMPLE.replace("-01", "-00");
        assert!(!unsampled.parse::<TraceContext>().unwrap().sampled);
    }

    #[test]
    fn a_later_version_is_read_as_far_as_this_one_goes() {
        for text in [
            EXAMPLE.replacen("00", "cc", 1),
            EXAMPLE.replacen("00", "cc", 1) + "-more",
            EXAMPLE.replace("-01", "-ff"),
        ] {
            assert!(text.parse::<TraceContext>().unwrap().sampled, "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let zeros = |digits: usize| "0".repeat(digits);
        for wrong in [
            String::new(),
            EXAMPLE.to_uppercase(),
            EXAMPLE.replacen("00", "ff", 1),
            EXAMPLE.replacen("00", "0", 1),
            format!("{EXAMPLE}-more"),
            format!("{EXAMPLE}-"),
            format!(" {EXAMPLE}"),
            EXAMPLE.replace("-01", ""),
            EXAMPLE.replace("-01", "-+1"),
            EXAMPLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &zeros(32)),
            EXAMPLE.replace("00f067aa0ba902b7", &zeros(16)),
            EXAMPLE.replace("4736-", "473-"),
            EXAMPLE.replace('-', "_"),
        ] {
            assert_eq!(wrong.parse::<TraceContext>(), Err(TraceSyntax), "{wrong}");
        }
    }
}
