//! A clip from its job to its frames: the plan, the schedule of takes, the sources that they are drawn from, and the
//! threads that paint them. It paints no scenes itself.

pub(crate) mod check;
pub(crate) mod film;
pub(crate) mod photo;
pub(crate) mod reel;
pub(crate) mod render;
pub(crate) mod set;
