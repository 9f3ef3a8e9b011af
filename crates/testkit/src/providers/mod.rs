//! Stand-ins of paid video providers: each plays one API as its SDK describes it, and is as strict as the provider. It
//! checks the key, the method, the path and every field of a body against an allow-list with types, and refuses
//! anything else in the provider's own shape. Jobs get on when they are looked at, so nothing depends on time. None
//! of them was compared with the real server; the official SDKs of Ark, DashScope, Gemini Omni and Veo bring
//! a film out of theirs.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is for tests")]

mod ark;
mod dashscope;
mod fal;
mod kling;
mod luma;
mod minimax;
mod omni;
mod openrouter;
mod provider;
mod replicate;
mod runway;
mod shape;
mod veo;
mod vidu;
mod xai;

pub use crate::http::Request;
pub use ark::Ark;
pub use dashscope::DashScope;
pub use fal::Fal;
pub use kling::Kling;
pub use luma::Luma;
pub use minimax::MiniMax;
pub use omni::GeminiOmni;
pub use openrouter::OpenRouter;
pub use provider::{
    Behaviour, Call, Fate, Job, Problem, Provider, Stage, Submit, TestProvider, World,
};
pub use replicate::Replicate;
pub use runway::Runway;
pub use veo::Veo;
pub use vidu::Vidu;
pub use xai::Xai;
