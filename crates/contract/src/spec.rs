//! `VideoSpec`: a validated request with every default filled in. Stores keep it and engines
//! receive it. Only two values may be open, since an engine or a fetched reference determines them:
//! an automatic length and an adaptive shape.

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::size::{Resolution, Size};

/// Version of the serialised form; a store refuses to read a newer one.
pub const SPEC_VERSION: u32 = 1;

/// The complete description of the video to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoSpec {
    /// [`SPEC_VERSION`] of the writer.
    pub version: u32,
    /// Canonical identifier of the model card, with aliases resolved.
    pub model: String,
    /// The content to show; trimmed, never empty.
    pub prompt: String,
    /// Things to avoid.
    pub negative_prompt: Option<String>,
    /// Length of the result.
    pub seconds: VideoLength,
    /// Size of the result.
    pub frame: FrameSize,
    /// Seed of all randomness; a random one is drawn before the spec is made.
    pub seed: u32,
    /// Whether the result has a sound track.
    pub generate_audio: bool,
    /// Reference material.
    pub inputs: VideoInputs,
    /// A quick 480p preview of this spec instead of the final.
    pub draft: bool,
    /// The draft that this spec renders as a final.
    pub final_of: Option<TaskId>,
    /// The earlier video that this spec edits.
    pub edit: Option<EditSpec>,
}

/// Length of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VideoLength {
    /// Length in whole seconds.
    Fixed(u32),
    /// The engine chooses.
    Auto,
}

/// Size of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameSize {
    /// Exactly this size.
    Fixed(Size),
    /// The listed size of this resolution that is nearest in shape to the first image.
    Adaptive(Resolution),
}

/// Reference material, by URL, or by the key of an uploaded file ([`mod@crate::uploaded`]). The three
/// forms exclude each other.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VideoInputs {
    /// Text alone.
    #[default]
    Text,
    /// The result starts with one image, and ends with the other if there is one.
    Frames {
        /// URL of the first frame.
        first: String,
        /// URL of the last frame.
        last: Option<String>,
    },
    /// Images to show and sound to hear.
    References {
        /// Image URLs, in the caller's order; never empty.
        images: Vec<String>,
        /// Audio URLs, in the caller's order.
        audios: Vec<String>,
    },
}

/// The source of an edit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditSpec {
    /// The completed task whose video is edited.
    pub task_id: TaskId,
    /// 0.0 keeps the source, 1.0 keeps only its length, size and rhythm.
    pub strength: f64,
}

/// One item of reference material.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceItem<'a> {
    /// An image, by URL.
    Image(&'a str),
    /// Sound, by URL.
    Audio(&'a str),
}

impl<'a> ReferenceItem<'a> {
    /// Its URL.
    pub const fn url(self) -> &'a str {
        match self {
            Self::Image(url) | Self::Audio(url) => url,
        }
    }
}

impl VideoInputs {
    /// Every item, in one fixed order: first and last frame; or images, then sound.
    pub fn references(&self) -> Vec<ReferenceItem<'_>> {
        match self {
            Self::Text => Vec::new(),
            Self::Frames { first, last } => std::iter::once(first)
                .chain(last)
                .map(|url| ReferenceItem::Image(url))
                .collect(),
            Self::References { images, audios } => {
                let images = images.iter().map(|url| ReferenceItem::Image(url));
                let audios = audios.iter().map(|url| ReferenceItem::Audio(url));
                images.chain(audios).collect()
            }
        }
    }

    /// Replaces every URL by the empty text. The kinds and the number of the items stay.
    pub fn clear_urls(&mut self) {
        // Empty, not absent: an edit of the video depends on which inputs it was made from.
        self.change_urls(|url| *url = String::new());
    }

    /// Lets `change` change each URL, in the order of [`Self::references`].
    pub fn change_urls(&mut self, change: impl FnMut(&mut String)) {
        match self {
            Self::Text => {}
            Self::Frames { first, last } => {
                std::iter::once(first).chain(last).for_each(change);
            }
            Self::References { images, audios } => {
                images.iter_mut().chain(audios).for_each(change);
            }
        }
    }

    /// The request's name for the item at `index` of [`VideoInputs::references`], such as
    /// `reference_images[1]`. A first frame is always `first_frame`, under whichever of its two
    /// names it was sent. `None` past the last item.
    pub fn param(&self, index: usize) -> Option<String> {
        match self {
            Self::Frames { .. } if index == 0 => Some("first_frame".to_owned()),
            Self::Frames { last: Some(_), .. } if index == 1 => Some("last_frame".to_owned()),
            Self::References { images, .. } if index < images.len() => {
                Some(format!("reference_images[{index}]"))
            }
            Self::References { images, audios } if index - images.len() < audios.len() => {
                Some(format!("reference_audios[{}]", index - images.len()))
            }
            _ => None,
        }
    }
}

impl VideoSpec {
    /// The size of the rendered frames: the requested size, or for a draft the 480p size of the
    /// same shape, if that is smaller. `None` while an adaptive shape waits for its image.
    pub fn render_size(&self) -> Option<Size> {
        let FrameSize::Fixed(size) = self.frame else {
            return None;
        };
        let small = Resolution::P480.shaped_like(size);
        // A model with small native sizes may have none below 480p: its draft is as large as its
        // final.
        let is_smaller = small.pixels() < size.pixels();
        Some(if self.draft && is_smaller {
            small
        } else {
            size
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_has_the_name_that_it_was_sent_under() {
        let url = || "https://example.com/a".to_owned();
        let names = |inputs: &VideoInputs| {
            let all = (0..inputs.references().len()).map(|index| inputs.param(index).unwrap());
            assert_eq!(inputs.param(inputs.references().len()), None);
            all.collect::<Vec<_>>()
        };
        assert!(names(&VideoInputs::Text).is_empty());
        let mut frames = VideoInputs::Frames {
            first: url(),
            last: None,
        };
        assert_eq!(names(&frames), ["first_frame"]);
        if let VideoInputs::Frames { last, .. } = &mut frames {
            *last = Some(url());
        }
        assert_eq!(names(&frames), ["first_frame", "last_frame"]);
        let references = VideoInputs::References {
            images: vec![url(), url()],
            audios: vec![url(), url()],
        };
        let expected = [
            "reference_images[0]",
            "reference_images[1]",
            "reference_audios[0]",
            "reference_audios[1]",
        ];
        assert_eq!(names(&references), expected);
    }
}
