//! A clip from its job to its frames: the plan, the schedule of takes, the sources that they are drawn from, and the
//! threads that paint them. It paints no scenes itself.

mod clip_painter;
pub(crate) mod clip_plan;
pub(crate) mod frame_source;
mod photo;
pub(crate) mod render;
mod schedule;
