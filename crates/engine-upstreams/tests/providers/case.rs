//! What a test must know of a provider.

use std::sync::Arc;

use kinora_contract::Size;
use kinora_engine_upstreams::dialects::dialect::ServerDialect;
use kinora_testkit::providers::{Fate, TestProvider};

/// A provider: its dialect, its stand-in, and the requests that were recorded for it.
pub(crate) struct Case {
    /// The name of its dialect.
    pub(crate) dialect: &'static str,
    /// Starts its stand-in.
    pub(crate) start: fn(key: &str) -> TestProvider,
    /// A key as its operator sets it.
    pub(crate) key: &'static str,
    /// The part of the key that must be seen nowhere.
    pub(crate) secret: &'static str,
    /// The model over there.
    pub(crate) model: &'static str,
    /// A size that it takes.
    pub(crate) size: (u32, u32),
    /// A length that it takes.
    pub(crate) seconds: u32,
    /// Whether its model has a switch for sound.
    pub(crate) sound: bool,
    /// Whether it stops a job; [`Fate::Waiting`] if only one that still waits.
    pub(crate) cancels: Option<Fate>,
    /// What it answers for a job that it does not know: whether the engine can tell, and submits anew.
    pub(crate) admits_forgetting: bool,
    /// Each kind of input that it takes: the line and the body that it is sent, as JSON.
    pub(crate) requests: &'static [(Input, &'static str, &'static str)],
}

/// A kind of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The prompt alone.
    Text,
    /// A picture on the web.
    FirstFrame,
    /// A picture that has no address on the web.
    UploadedFrame,
    /// A first and a last picture on the web.
    Frames,
    /// Two pictures on the web.
    Images,
    /// A picture and a sound on the web.
    Sound,
}

impl Input {
    /// Every kind.
    pub(crate) const ALL: [Self; 6] = [
        Self::Text,
        Self::FirstFrame,
        Self::UploadedFrame,
        Self::Frames,
        Self::Images,
        Self::Sound,
    ];
}

/// Every provider.
pub(crate) const CASES: &[&Case] = &[
    &crate::ark::CASE,
    &crate::dashscope::CASE,
    &crate::kling::CASE,
    &crate::minimax::CASE,
    &crate::veo::CASE,
];

impl Case {
    /// Its dialect.
    pub(crate) fn dialect(&self) -> Arc<ServerDialect> {
        ServerDialect::named(self.dialect).unwrap()
    }

    /// The size of every request.
    pub(crate) fn size(&self) -> Size {
        Size::new(self.size.0, self.size.1)
    }

    /// Its stand-in.
    pub(crate) fn server(&self) -> TestProvider {
        (self.start)(self.key)
    }
}
