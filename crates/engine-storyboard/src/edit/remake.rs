//! A source that this engine made itself, made again under new words: the shots of its first spec,
//! with their readings as changed by every later edit. It reads scripts; it paints nothing.

use kinora_contract::{VideoInputs, VideoLength, VideoSpec};

use crate::clip::clip_plan::FPS;
use crate::clip::frame_source::{FrameSource, MixCourse};
use crate::lexicon::Reading;
use crate::places::FigureShortage;
use crate::revise::EditChange;
use crate::scene::{scene_setting, shortages};
use crate::script::{Shot, avoided, merge_lines, shots};
use crate::sound::ClipSound;
use kinora_engine::{ClipPlan, FrameJob};

/// Maximum number of versions in a mix; the engine paints each in full.
const VERSIONS_MAX: usize = 4;

/// Strength from which on the old version of a changed thing no longer shows.
const THINGS_STRENGTH: f32 = 0.6;

/// A source and what an edit makes of it.
#[derive(Debug)]
pub(crate) struct Remake<'a> {
    /// First spec of the script. Its prompt and seed fix the position of everything.
    first: &'a VideoSpec,
    /// The shots of that spec, with their times.
    pub(crate) shots: Vec<Shot>,
    /// The versions to mix, with their shares.
    versions: Vec<RemakeVersion>,
    /// The versions before the last edit.
    before: Vec<RemakeVersion>,
}

/// One reading of all shots.
#[derive(Clone, Debug, PartialEq)]
struct RemakeVersion {
    readings: Vec<Reading>,
    /// The shares of all versions add up to 1.0.
    share: f32,
}

impl<'a> Remake<'a> {
    /// The remake of `job`'s source; `None` if this engine did not make it from words alone, or if
    /// the edit brings pictures.
    pub(crate) fn from_job(job: &FrameJob<'a>) -> Option<Self> {
        let (spec, clip, script) = (job.spec, job.clip, &job.materials.script);
        spec.edit.as_ref()?;
        let (first, later) = script.split_first()?;
        let mut edits = later.iter().map(AsRef::as_ref).chain([spec]);
        // The frames must be those that the first spec gives today; of a clip that was cut or
        // scaled since, only the pictures are known.
        let as_long = match first.seconds {
            VideoLength::Fixed(seconds) => seconds.checked_mul(FPS) == Some(clip.frames),
            VideoLength::Auto => true,
        };
        let same = as_long && clip.fps == FPS && first.render_size() == Some(clip.size);
        let begins = first.inputs == VideoInputs::Text && first.edit.is_none();
        if !(same
            && begins
            && edits
                .clone()
                .all(|link| link.inputs == VideoInputs::Text && link.edit.is_some()))
        {
            return None;
        }
        let shots = shots(&first.prompt, avoided(first), &[clip.frames], clip.fps);
        let mut made = Self {
            versions: vec![RemakeVersion {
                readings: shots.iter().map(|shot| shot.reading.clone()).collect(),
                share: 1.0,
            }],
            before: Vec::new(),
            first,
            shots,
        };
        edits.by_ref().for_each(|link| made.edit(link));
        Some(made)
    }

    /// Puts the words of `link` over all versions, as far as its strength goes.
    fn edit(&mut self, link: &VideoSpec) {
        let strength = link.edit.as_ref().map_or(1.0, |edit| edit.strength);
        let strength = strength.clamp(0.0, 1.0) as f32;
        let change = EditChange::read(&link.prompt, avoided(link));
        self.before = std::mem::take(&mut self.versions);
        // Things come, go and change sooner than the light: half a boat looks wrong, half a night is dusk.
        let things = (strength / THINGS_STRENGTH).min(1.0);
        for RemakeVersion { readings, share } in self.before.clone() {
            // Each version becomes three: as it was, with the new things in the old light, and
            // wholly revised. At strength 0.5 things are at 0.83, which gives 0.08, 0.42 and 0.5.
            let shots = self.shots.iter().zip(&readings);
            let (recast, all) = shots
                .map(|(shot, reading)| {
                    let shot = with_reading(shot, reading.clone());
                    let settled = scene_setting(&shot, &self.first.prompt, self.first.seed);
                    let reading = &shot.reading;
                    (
                        change.recast(reading, settled),
                        change.revise(reading, settled),
                    )
                })
                .unzip();
            let kept = share * (1.0 - strength);
            self.add_version(RemakeVersion {
                share: kept * (1.0 - things),
                readings,
            });
            self.add_version(RemakeVersion {
                share: kept * things,
                readings: recast,
            });
            self.add_version(RemakeVersion {
                share: share * strength,
                readings: all,
            });
        }
        // Every edit may triple the versions, and each is painted in full: only the largest stay,
        // scaled to 1.0 together.
        self.versions.sort_by(|a, b| b.share.total_cmp(&a.share));
        self.versions.truncate(VERSIONS_MAX);
        let all: f32 = self.versions.iter().map(|version| version.share).sum();
        for version in &mut self.versions {
            version.share /= all;
        }
    }

    fn add_version(&mut self, version: RemakeVersion) {
        if version.share <= 0.0 {
            return;
        }
        match self
            .versions
            .iter_mut()
            .find(|one| one.readings == version.readings)
        {
            Some(one) => one.share += version.share,
            None => self.versions.push(version),
        }
    }

    /// The set of shot `index`.
    pub(crate) fn frame_source(&self, index: usize, clip: ClipPlan) -> FrameSource {
        let mix = self.mix(index);
        let mut set = FrameSource::painted(&mix[0].0, self.first, clip);
        let mut all = mix[0].1;
        for (shot, share) in &mix[1..] {
            all += share;
            // Over all before it, each comes with its part of the sum so far: in the end each has
            // its own share.
            let painted = FrameSource::painted(shot, self.first, clip);
            set = FrameSource::mixed(set, painted, MixCourse::still(share / all));
        }
        set
    }

    /// The subjects of which the last edit asks for more figures than its scenes draw.
    pub(crate) fn shortages(&self) -> Vec<FigureShortage> {
        let [before, mut now] = [&self.before, &self.versions].map(|versions| {
            versions
                .iter()
                .flat_map(|version| self.shots.iter().zip(&version.readings))
                .map(|(shot, reading)| with_reading(shot, reading.clone()))
                .flat_map(|shot| shortages(&shot, &self.first.prompt, self.first.seed))
                .collect::<Vec<FigureShortage>>()
        });
        now.retain(|one| !before.contains(one));
        now
    }

    /// The mix of shot `index`: the shot under each of its readings, with shares.
    fn mix(&self, index: usize) -> Vec<(Shot, f32)> {
        let mut mix: Vec<(Shot, f32)> = Vec::new();
        for version in &self.versions {
            let reading = &version.readings[index];
            match mix.iter_mut().find(|(shot, _)| shot.reading == *reading) {
                Some((_, share)) => *share += version.share,
                None => mix.push((
                    with_reading(&self.shots[index], reading.clone()),
                    version.share,
                )),
            }
        }
        mix
    }

    /// The sound of each version and its volume, with the random choices of the source.
    pub(crate) fn sounds(&self, job: &FrameJob<'_>) -> Vec<(ClipSound, f32)> {
        let spec = VideoSpec {
            prompt: self.first.prompt.clone(),
            seed: self.first.seed,
            ..job.spec.clone()
        };
        let job = FrameJob {
            spec: &spec,
            ..*job
        };
        self.versions
            .iter()
            .map(|version| {
                let readings = self.shots.iter().zip(&version.readings);
                let shots = readings.map(|(shot, reading)| with_reading(shot, reading.clone()));
                let lines = merge_lines(shots.collect());
                (ClipSound::new(&job, &lines), version.share)
            })
            .collect()
    }
}

/// `shot` under another reading; its own words go on to fix where everything stands.
fn with_reading(shot: &Shot, reading: Reading) -> Shot {
    let shot = shot.clone();
    Shot { reading, ..shot }
}

#[cfg(test)]
mod tests;
