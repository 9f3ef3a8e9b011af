//! The settings of the storyboard as an operator writes them: `[storyboard]` for the engine in the service, and
//! `[[engines]]` of its kind for those in processes of their own.

use std::sync::Arc;

use kinora_engine::{
    ClipPlanner, Engine, EngineError, EngineKind, EngineOutput, FrameKind, KindError,
};

use crate::Storyboard;
use crate::options::StoryboardKind;

/// Longest mark: it has two short lines in the narrowest frame.
const MARK_CHARS_MAX: usize = 80;

impl EngineKind for StoryboardKind {
    fn check(&self, confined: bool) -> Result<(), KindError> {
        let text = &self.mark_text;
        // Characters, not bytes: what counts is the room in the frame.
        let long = text.chars().count() > MARK_CHARS_MAX;
        if long || text.trim().is_empty() || text.contains(char::is_control) {
            return Err(KindError(format!(
                "mark_text must have 1 to {MARK_CHARS_MAX} characters and no line breaks; \
                 `mark = false` takes the mark away"
            )));
        }
        // Refused at the start: otherwise captions would lack characters without a reason that an
        // operator could see.
        if self.system_fonts && confined {
            let what =
                "system_fonts needs `host.sandbox = false`: a sandboxed process reads no fonts";
            return Err(KindError(what.to_owned()));
        }
        Ok(())
    }

    fn output(&self) -> EngineOutput<'_> {
        EngineOutput::Frames(self)
    }

    fn device(&self) -> Option<String> {
        Some("cpu".to_owned())
    }
}

impl FrameKind for StoryboardKind {
    fn planner(&self, _name: &str) -> Result<Arc<dyn ClipPlanner>, KindError> {
        Ok(Arc::new(Storyboard::new(self.clone())))
    }

    fn open(&self, _name: &str) -> Result<Box<dyn Engine>, EngineError> {
        Ok(Box::new(Storyboard::new(self.clone())))
    }
}
