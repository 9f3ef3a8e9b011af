//! `[engines.bindings]`: which input of which node takes which part of a request. What an engine can do
//! follows from them. Nothing here knows the workflow.

use std::fmt;

use kinora_contract::Features;
use serde::{Deserialize, Serialize};

/// One input of one node: `"6.text"`. Identifiers of nodes have no full stop; names of inputs may.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    /// The node's identifier.
    pub node: String,
    /// The input's name.
    pub input: String,
}

/// Inputs that take the same value: one, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "OneOrMany")]
pub struct Targets(pub Vec<Target>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Target),
    Many(Vec<Target>),
}

/// A file of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The image that the film starts with.
    FirstFrame,
    /// The image that the film ends with.
    LastFrame,
    /// Images to show.
    ReferenceImages,
    /// Sound to hear.
    ReferenceAudios,
    /// The video to edit.
    SourceVideo,
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bindings {
    /// The prompt.
    pub prompt: Targets,
    /// Things to avoid.
    pub negative_prompt: Targets,
    /// The seed, a number of 32 bits.
    pub seed: Targets,
    /// Width in pixels.
    pub width: Targets,
    /// Height in pixels.
    pub height: Targets,
    /// Number of frames.
    pub frames: Targets,
    /// Frames per second.
    pub fps: Targets,
    /// Whether the film has sound.
    pub generate_audio: Targets,
    /// 0.0 keeps the source of an edit, 1.0 replaces it.
    pub edit_strength: Targets,
    /// The image that the film starts with.
    pub first_frame: Option<Target>,
    /// The image that the film ends with.
    pub last_frame: Option<Target>,
    /// One input for each image.
    pub reference_images: Vec<Target>,
    /// One input for each sound.
    pub reference_audios: Vec<Target>,
    /// The video to edit.
    pub source_video: Option<Target>,
    /// Takes the start of the output's file name; by default the input of that name of `output`.
    pub filename_prefix: Option<Target>,
    /// The node whose film is the result.
    pub output: String,
    /// Files that a request may lack. Their nodes are left out then, with the links to them.
    pub optional: Vec<Role>,
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once('.') {
            Some((node, input)) if !node.is_empty() && !input.is_empty() => Ok(Self {
                node: node.to_owned(),
                input: input.to_owned(),
            }),
            _ => Err(format!(
                "'{text}' does not name an input of a node; write NODE.INPUT, such as \"6.text\""
            )),
        }
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.input)
    }
}

impl From<OneOrMany> for Targets {
    fn from(given: OneOrMany) -> Self {
        match given {
            OneOrMany::One(one) => Self(vec![one]),
            OneOrMany::Many(many) => Self(many),
        }
    }
}

impl Targets {
    /// Whether nothing is bound.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] = [
        Self::FirstFrame,
        Self::LastFrame,
        Self::ReferenceImages,
        Self::ReferenceAudios,
        Self::SourceVideo,
    ];

    /// Its name in the configuration, and of its files at a server.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstFrame => "first_frame",
            Self::LastFrame => "last_frame",
            Self::ReferenceImages => "reference_images",
            Self::ReferenceAudios => "reference_audios",
            Self::SourceVideo => "source_video",
        }
    }
}

impl Bindings {
    /// The inputs of a role, one for each file.
    pub fn slots(&self, role: Role) -> &[Target] {
        match role {
            Role::FirstFrame => self.first_frame.as_slice(),
            Role::LastFrame => self.last_frame.as_slice(),
            Role::ReferenceImages => &self.reference_images,
            Role::ReferenceAudios => &self.reference_audios,
            Role::SourceVideo => self.source_video.as_slice(),
        }
    }

    /// Whether a request may lack the files of `role`.
    pub fn is_optional(&self, role: Role) -> bool {
        self.optional.contains(&role)
    }

    /// The inputs of values, with the names of their bindings.
    pub fn values(&self) -> [(&'static str, &Targets); 9] {
        [
            ("prompt", &self.prompt),
            ("negative_prompt", &self.negative_prompt),
            ("seed", &self.seed),
            ("width", &self.width),
            ("height", &self.height),
            ("frames", &self.frames),
            ("fps", &self.fps),
            ("generate_audio", &self.generate_audio),
            ("edit_strength", &self.edit_strength),
        ]
    }

    /// The input that takes the start of the file name.
    pub fn prefix(&self) -> Target {
        self.filename_prefix.clone().unwrap_or_else(|| Target {
            node: self.output.clone(),
            input: "filename_prefix".to_owned(),
        })
    }

    /// Roles without which no request can run.
    fn musts(&self) -> impl Iterator<Item = Role> + '_ {
        Role::ALL
            .into_iter()
            .filter(|role| !self.slots(*role).is_empty() && !self.is_optional(*role))
    }

    /// Whether requests that bring the files of `role` can run.
    fn takes(&self, role: Role) -> bool {
        !self.slots(role).is_empty() && self.musts().all(|must| must == role)
    }

    /// The requests that the engine takes.
    pub fn features(&self) -> Features {
        let first_frame = self.takes(Role::FirstFrame);
        let images = self.takes(Role::ReferenceImages);
        let count = |is_taken: bool, role| {
            if is_taken {
                u32::try_from(self.slots(role).len()).unwrap_or(u32::MAX)
            } else {
                0
            }
        };
        Features {
            text_to_video: self.musts().next().is_none(),
            first_frame,
            last_frame: first_frame && self.last_frame.is_some(),
            reference_images_max: count(images, Role::ReferenceImages),
            reference_audios_max: count(images, Role::ReferenceAudios),
            audio_output: !self.generate_audio.is_empty(),
            auto_duration: false,
            negative_prompt: !self.negative_prompt.is_empty(),
            draft: false,
            edit: self.takes(Role::SourceVideo),
        }
    }

    /// Refuses bindings that contradict each other.
    ///
    /// # Errors
    /// A sentence for an operator.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("bindings.{what}"));
        if self.prompt.is_empty() {
            return wrong("prompt must name the input that takes the prompt, such as \"6.text\"");
        }
        if self.output.is_empty() {
            return wrong("output must name the node that saves the film, such as \"9\"");
        }
        if self.width.is_empty() != self.height.is_empty() {
            return wrong("width and bindings.height go together");
        }
        if self.last_frame.is_some() && self.first_frame.is_none() {
            return wrong("last_frame needs bindings.first_frame");
        }
        if !self.reference_audios.is_empty() && self.reference_images.is_empty() {
            return wrong("reference_audios needs bindings.reference_images");
        }
        // A request may have the one without the other.
        for role in [Role::LastFrame, Role::ReferenceAudios] {
            if !self.slots(role).is_empty() && !self.is_optional(role) {
                let name = role.name();
                return wrong(&format!("optional must contain \"{name}\""));
            }
        }
        let musts: Vec<&str> = self.musts().map(Role::name).collect();
        if let [first, second, ..] = musts[..] {
            return wrong(&format!(
                "optional must contain \"{first}\" or \"{second}\": no request has both"
            ));
        }
        match self
            .optional
            .iter()
            .find(|role| self.slots(**role).is_empty())
        {
            Some(role) => wrong(&format!(
                "optional names {}, which is not bound",
                role.name()
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bindings(text: &str) -> Bindings {
        toml::from_str(&format!("prompt = \"6.text\"\noutput = \"9\"\n{text}")).unwrap()
    }

    #[test]
    fn features_follow_from_the_bindings() {
        let text = bindings("").features();
        assert!(text.text_to_video && !text.first_frame && !text.negative_prompt);
        let image = bindings("first_frame = \"1.image\"").features();
        assert!(!image.text_to_video && image.first_frame && !image.last_frame && !image.edit);
        let all = bindings(
            "first_frame = \"1.image\"\nlast_frame = \"2.image\"\nreference_images = [\"3.image\", \"4.image\"]\n\
             reference_audios = [\"5.audio\"]\nsource_video = \"7.file\"\nnegative_prompt = [\"6.a\", \"8.b.c\"]\n\
             optional = [\"first_frame\", \"last_frame\", \"reference_images\", \"reference_audios\", \"source_video\"]",
        );
        all.check().unwrap();
        assert_eq!(all.negative_prompt.0[1].input, "b.c");
        let all = all.features();
        assert!(all.text_to_video && all.first_frame && all.last_frame && all.edit);
        assert_eq!((all.reference_images_max, all.reference_audios_max), (2, 1));
        assert!(!all.auto_duration && !all.draft && !all.audio_output);
    }

    #[test]
    fn bindings_that_no_request_could_meet_are_refused_with_what_to_do() {
        for (text, word) in [
            ("width = \"5.width\"", "height"),
            ("last_frame = \"1.image\"", "first_frame"),
            ("first_frame = \"1.i\"\nlast_frame = \"2.i\"", "last_frame"),
            (
                "first_frame = \"1.i\"\nsource_video = \"2.i\"",
                "no request has both",
            ),
            ("optional = [\"first_frame\"]", "not bound"),
        ] {
            let error = bindings(text).check().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        assert!(toml::from_str::<Bindings>("prompt = \"text\"").is_err());
        assert!(Bindings::default().check().unwrap_err().contains("prompt"));
    }
}
