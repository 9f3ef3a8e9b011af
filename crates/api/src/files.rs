//! The files of a result, under the names that clients use.

use kinora_contract::{Artifact, StoredFile, TaskId};

/// `Cache-Control` for results, which never change.
pub(crate) const KEEPABLE: &str = "private, max-age=3600";

/// One of a result's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The MP4.
    Video,
    /// The poster image.
    Thumbnail,
    /// Frames over time in one picture.
    Spritesheet,
}

impl Variant {
    pub(crate) const ALL: [Self; 3] = [Self::Video, Self::Thumbnail, Self::Spritesheet];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Thumbnail => "thumbnail",
            Self::Spritesheet => "spritesheet",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The part of a URL's query before the signature; empty for the default variant.
    pub(crate) const fn query(self) -> &'static str {
        match self {
            Self::Video => "",
            Self::Thumbnail => "variant=thumbnail&",
            Self::Spritesheet => "variant=spritesheet&",
        }
    }

    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Video => "video/mp4",
            Self::Thumbnail => "image/webp",
            Self::Spritesheet => "image/jpeg",
        }
    }

    /// The suffix of a downloaded file's name.
    const fn ending(self) -> &'static str {
        match self {
            Self::Video => ".mp4",
            Self::Thumbnail => ".webp",
            Self::Spritesheet => "-sheet.jpg",
        }
    }

    /// Lets browsers play a file inline, and save it under the name of its task.
    pub(crate) fn disposition(self, task: TaskId) -> String {
        format!("inline; filename=\"{task}{}\"", self.ending())
    }

    pub(crate) const fn of(self, artifact: &Artifact) -> &StoredFile {
        match self {
            Self::Video => &artifact.video,
            Self::Thumbnail => &artifact.thumbnail,
            Self::Spritesheet => &artifact.spritesheet,
        }
    }
}
