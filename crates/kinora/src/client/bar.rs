//! The progress of a task: one line of a terminal that is updated in place. Nothing if standard error is not a terminal.

use kinora_client::{Status, Video};
use kinora_contract::Stopwatch;

use crate::progress::{StatusLine, bar_cells, minutes_and_seconds};
use crate::system;

/// Minimum progress and time for an estimate of the remaining time.
const PERCENT_MIN: u8 = 5;
const WORKING_SECONDS_MIN: u64 = 2;

/// The line.
#[derive(Debug)]
pub(super) struct TaskBar {
    line: StatusLine,
    begun: Stopwatch,
    /// Time since the engine was first seen at work.
    working: Option<Stopwatch>,
    video: Option<Video>,
}

impl TaskBar {
    pub(super) fn new() -> Self {
        Self {
            line: StatusLine::new(),
            begun: system::stopwatch(),
            working: None,
            video: None,
        }
    }

    /// Whether there is a terminal.
    pub(super) const fn is_shown(&self) -> bool {
        self.line.is_shown()
    }

    /// Shows a changed task.
    pub(super) fn update(&mut self, video: &Video) {
        if video.status == Status::InProgress && self.working.is_none() {
            self.working = Some(system::stopwatch());
        }
        self.video = Some(video.clone());
        self.tick();
    }

    /// Redraws the elapsed time.
    pub(super) fn tick(&self) {
        if let Some(video) = &self.video {
            let working = self.working.as_ref().map(|one| one.elapsed().as_secs());
            self.show_activity(&line(video, self.begun.elapsed().as_secs(), working));
        }
    }

    /// Shows another activity, such as the download.
    pub(super) fn show_activity(&self, text: &str) {
        self.line.show(text);
    }

    /// Removes the line, so that other output can follow.
    pub(super) fn clear(&self) {
        self.line.clear();
    }
}

impl Drop for TaskBar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The line for `video`, given the seconds since the start and since work was first seen.
fn line(video: &Video, seconds: u64, working: Option<u64>) -> String {
    let time = minutes_and_seconds(seconds);
    match video.status {
        Status::Queued => {
            let ahead = match video.queue_position {
                Some(0) => ", next".to_owned(),
                Some(tasks) => format!(", {tasks} before it"),
                None => String::new(),
            };
            format!("queued{ahead}  {time}")
        }
        Status::InProgress => {
            let left = working.and_then(|seconds| left(video.progress, seconds));
            let left = left.map_or_else(String::new, |left| {
                format!(", about {} left", minutes_and_seconds(left))
            });
            format!(
                "{} {:3} %  {time}{left}",
                bar_cells(video.progress),
                video.progress
            )
        }
        other => format!("{}  {time}", other.name()),
    }
}

fn left(percent: u8, working: u64) -> Option<u64> {
    let done = u64::from(percent);
    (percent >= PERCENT_MIN && working >= WORKING_SECONDS_MIN)
        .then(|| working * (100 - done.min(100)) / done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn video(status: &str, progress: u8, position: Option<u64>) -> Video {
        serde_json::from_value(serde_json::json!({
            "id": "video_x", "status": status, "progress": progress, "queue_position": position,
        }))
        .unwrap()
    }

    #[test]
    fn the_line_says_what_a_person_waits_for() {
        for (video, working, expected) in [
            (video("queued", 0, Some(0)), None, "queued, next  1:05"),
            (
                video("queued", 0, Some(3)),
                None,
                "queued, 3 before it  1:05",
            ),
            (video("queued", 0, None), None, "queued  1:05"),
            (
                video("in_progress", 0, None),
                Some(1),
                "[------------------------]   0 %  1:05",
            ),
            (
                video("in_progress", 50, None),
                Some(1),
                "[############------------]  50 %  1:05",
            ),
            (
                video("in_progress", 50, None),
                Some(30),
                "[############------------]  50 %  1:05, about 0:30 left",
            ),
            (video("completed", 100, None), Some(30), "completed  1:05"),
        ] {
            assert_eq!(line(&video, 65, working), expected);
        }
    }
}
