//! One clip while it is made: its takes, the sets and captions in use, each made at its first use and released after
//! its last, and the drawing of any frame. It decides no times and runs no threads.

use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::{Size, VideoSpec};
use kinora_engine::{ClipPlan, FrameJob, JobMaterials, RgbPicture};

use super::frame_source::{CanvasPool, FrameSource, MixCourse, TakeMoment};
use super::photo::{
    Photo, PhotoMorph, PhotoView, PictureFit, picture_fit, scale_to_cover, scale_whole,
};
use super::schedule::{ClipEnds, ClipSchedule, ClipTake, TakeContent};
use crate::caption::{Caption, CaptionText, TextPage};
use crate::edit::EditSource;
use crate::edit::restyle::{self, OldLetters, Restyle};
use crate::lexicon::{Hour, Reading};
use crate::options::StoryboardKind;
use crate::raster::canvas::Canvas;
use crate::raster::colour::smooth;
use crate::revise::{self, EditChange};
use crate::rng::{Rng, hash};
use crate::scene::camera::FramePulse;
use crate::scene::palette::Palette;
use crate::scene::{Scene, palette};
use crate::script::{Shot, avoided};
use crate::sound::{SoundTrack, samples};

/// Number of frames of a draft that share one painted frame.
const DRAFT_HOLD: u32 = 3;
/// Time in which letters, mark and vignette appear after a frame of the caller's, seconds.
const LETTERS_S: f32 = 0.5;
/// Time in which the hour's colour appears there, seconds.
const GRADE_S: f32 = 2.0;

/// A clip being made, with the sets and captions in use.
#[derive(Debug)]
pub(crate) struct ClipPainter<'a> {
    spec: &'a VideoSpec,
    materials: &'a JobMaterials,
    pub(crate) clip: ClipPlan,
    pub(crate) schedule: ClipSchedule,
    sets: Vec<LazySlot<FrameSource>>,
    /// The source material it paints from.
    pub(crate) source: EditSource<'a>,
    old_letters: LazySlot<OldLetters>,
    /// One for each text line.
    captions: Vec<LazySlot<Caption>>,
    mark: Option<TextPage>,
    options: &'a StoryboardKind,
    swell: SoundSwell,
    ends: ClipEnds,
    /// Strength of the edit, 0.0 to 1.0; 1.0 if there is none.
    strength: f32,
}

/// Working memory of one painter.
#[derive(Debug)]
pub(crate) struct PainterMemory {
    canvas: Canvas,
    second: Option<Canvas>,
    desk: CanvasPool,
}

impl<'a> ClipPainter<'a> {
    /// The film of `job` over `ground`.
    pub(crate) fn new(
        job: &FrameJob<'a>,
        options: &'a StoryboardKind,
        ground: EditSource<'a>,
    ) -> Self {
        let FrameJob {
            spec,
            materials,
            clip,
            ..
        } = *job;
        let reel = ClipSchedule::new(job, &ground);
        let track = match &ground {
            EditSource::Remade(_) | EditSource::Observed(_) => None,
            EditSource::None => {
                SoundTrack::from_sounds(&materials.audios, samples(clip.frames, clip.fps))
            }
        };
        let swell = track.map(|track| SoundSwell::from_sound(&track, clip.frames, clip.fps));
        Self {
            spec,
            materials,
            clip,
            sets: slots(reel.takes.len()),
            source: ground,
            old_letters: LazySlot::default(),
            captions: slots(reel.lines.len()),
            mark: mark(spec, options, clip.size),
            options,
            schedule: reel,
            swell: swell.unwrap_or_default(),
            ends: ClipEnds::new(materials, clip),
            strength: spec
                .edit
                .as_ref()
                .map_or(1.0, |edit| edit.strength.clamp(0.0, 1.0) as f32),
        }
    }

    /// Number of consecutive frames that share one painted frame.
    pub(crate) fn hold(&self) -> u32 {
        if self.spec.draft && self.spec.edit.is_none() {
            DRAFT_HOLD
        } else {
            1
        }
    }

    /// The frame that is painted for the `nth` run of [`ClipPainter::hold`] frames: the middle one, but
    /// at both ends the outermost.
    pub(crate) fn painted_frame(&self, nth: u32) -> u32 {
        let first = nth * self.hold();
        let last = (first + self.hold()).min(self.clip.frames) - 1;
        // Both ends are exact: there clips join and loop.
        if first == 0 {
            0
        } else if last + 1 == self.clip.frames {
            last
        } else {
            u32::midpoint(first, last)
        }
    }

    pub(crate) fn painter_memory(&self) -> PainterMemory {
        PainterMemory {
            canvas: self.canvas(),
            second: None,
            desk: CanvasPool::default(),
        }
    }

    fn canvas(&self) -> Canvas {
        let size = self.clip.size;
        Canvas::new(size.width as usize, size.height as usize)
    }

    fn palette(&self, shot: &Shot) -> Palette {
        palette(shot, &self.spec.prompt, self.spec.seed)
    }

    /// The set of take `index`, made at its first use.
    fn frame_source(&self, index: usize) -> Arc<FrameSource> {
        let take = &self.schedule.takes[index];
        get_or_make(&self.sets[index], || self.build_source(take, index))
    }

    fn build_source(&self, take: &ClipTake, index: usize) -> FrameSource {
        let (shot, spec, clip) = (&take.shot, self.spec, self.clip);
        // A stream for each take. Painters build takes in any order, which must not change them.
        let mut rng = Rng::new(u64::from(spec.seed) ^ hash(spec.prompt.as_bytes()))
            .fork(&format!("photo {index}"));
        let materials = self.materials;
        let set = match (take.show, &materials.first_frame) {
            (TakeContent::Image(image, again), _) => materials.images.get(image).map(|picture| {
                let fit = picture_fit(picture, clip.size.width as usize, clip.size.height as usize);
                let way = PhotoView::camera_move(&shot.reading, &mut rng);
                let (mut from, mut to) = match fit {
                    PictureFit::Whole => PhotoView::straight(way),
                    PictureFit::Tall => PhotoView::raised(way),
                    PictureFit::Wide => way,
                };
                if again % 2 == 1 {
                    // Seen again: from nearer, so that a new shot is a new view.
                    from.zoom += 0.22;
                    to.zoom += 0.22;
                }
                FrameSource::Photo(self.photo(
                    picture,
                    vec![from, to],
                    shot,
                    fit == PictureFit::Whole,
                ))
            }),
            (TakeContent::Frames, Some(first)) => Some(self.given_frames(first, shot, &mut rng)),
            _ => None,
        };
        match (&self.source, set) {
            (EditSource::None, set) => set.unwrap_or_else(|| match shot.at_turned_hour() {
                // "Night turns into day": the same scene in another light.
                Some(later) => FrameSource::mixed(
                    FrameSource::painted(shot, spec, clip),
                    FrameSource::painted(&later, spec, clip),
                    MixCourse::turning(1.0, 0.12, 0.88),
                ),
                None => FrameSource::painted(shot, spec, clip),
            }),
            (EditSource::Remade(remake), _) => remake.frame_source(index, clip),
            (EditSource::Observed(rhythm), None) => {
                FrameSource::edited(self.restyle(shot, rhythm.mean(shot.start)))
            }
            (EditSource::Observed(_), Some(set)) => {
                // Given pictures come over the source as far as the edit goes.
                let source = Restyle::new(
                    &Reading::default(),
                    1.0,
                    None,
                    &self.old_letters(),
                    self.strength,
                );
                FrameSource::mixed(
                    FrameSource::edited(source),
                    set,
                    MixCourse::still(self.strength),
                )
            }
        }
    }

    /// The light and weather that the words of `shot` ask for over a source of that mean light.
    fn restyle(&self, shot: &Shot, mean: f32) -> Restyle {
        let (spec, clip) = (self.spec, self.clip);
        let air = match self.schedule.lines.len() {
            1 => EditChange::read(&spec.prompt, avoided(spec)).air(),
            _ => revise::air(&shot.reading),
        };
        let weather = restyle::has_visible_weather(&air).then(|| {
            let hour = air.hour.or(Some(Hour::Day));
            let reading = Reading {
                hour,
                ..air.clone()
            };
            let shot = Shot {
                reading,
                ..shot.clone()
            };
            Scene::weather(&shot, &spec.prompt, spec.seed, clip.size, clip.fps)
        });
        Restyle::new(&air, mean, weather, &self.old_letters(), self.strength)
    }

    /// The letters that this engine wrote on the source.
    fn old_letters(&self) -> Arc<OldLetters> {
        let script = &self.materials.script;
        get_or_make(&self.old_letters, || {
            OldLetters::from_script(script, self.clip, self.options.system_fonts)
        })
    }

    /// The first frame with a camera that follows the lines, or on to the last frame.
    fn given_frames(&self, first: &RgbPicture, shot: &Shot, rng: &mut Rng) -> FrameSource {
        let goal = PhotoView::camera_goal(&shot.reading, rng);
        let Some(last) = &self.materials.last_frame else {
            let goals = self.schedule.lines.iter().skip(1);
            let later: Vec<PhotoView> = goals
                .map(|line| PhotoView::camera_goal(&line.reading, rng))
                .collect();
            let path = [PhotoView::REST, goal].into_iter().chain(later).collect();
            return FrameSource::Photo(self.photo(first, path, shot, false));
        };
        // Both move the same way across, so that one camera seems to pass from one to the other.
        let before = PhotoView {
            across: -goal.across,
            down: -goal.down,
            zoom: goal.zoom,
        };
        let first = self.photo(first, vec![PhotoView::REST, goal], shot, false);
        let last = self.photo(last, vec![before, PhotoView::REST], shot, false);
        let size = self.clip.size;
        let (width, height) = (size.width as usize, size.height as usize);
        FrameSource::Morph(PhotoMorph::new(first, last, width, height, rng.next()))
    }

    fn photo(&self, picture: &RgbPicture, path: Vec<PhotoView>, shot: &Shot, whole: bool) -> Photo {
        let size = self.clip.size;
        let (width, height) = (size.width as usize, size.height as usize);
        let texture = if whole {
            scale_whole(picture, width, height)
        } else {
            scale_to_cover(picture, width, height)
        };
        Photo::new(texture, path, &self.palette(shot))
    }

    /// Releases the sets and captions that no frame from `frame` on needs.
    pub(crate) fn strike(&self, frame: u32) {
        for (index, take) in self.schedule.takes.iter().enumerate() {
            if take.shot.end <= frame {
                release(&self.sets[index]);
            }
        }
        for (line, caption) in self.schedule.lines.iter().zip(&self.captions) {
            if line.end <= frame {
                release(caption);
            }
        }
    }

    /// Draws take `index` at `frame` of the clip; returns the darkness of its corners.
    fn draw_take(
        &self,
        index: usize,
        frame: u32,
        source: Option<&[u8]>,
        canvas: &mut Canvas,
        desk: &mut CanvasPool,
    ) -> f32 {
        let moment = self.take_moment(index, frame, source);
        self.frame_source(index).draw(moment, canvas, desk)
    }

    /// The instant of take `index` at `frame` of the clip.
    fn take_moment<'m>(
        &self,
        index: usize,
        frame: u32,
        source: Option<&'m [u8]>,
    ) -> TakeMoment<'m> {
        let shot = &self.schedule.takes[index].shot;
        let at = frame - shot.appears().min(frame);
        let long = shot.end - shot.appears();
        TakeMoment {
            share: self.ends.camera_progress(at, long),
            time_s: at as f32 / self.clip.fps as f32,
            grade: self.ends.appearance(frame, GRADE_S),
            pulse: FramePulse {
                light: 1.0,
                ..self.swell.at(frame)
            },
            source: source.map(|rgb| (frame, rgb)),
        }
    }

    /// Brightness after fades: those that the words ask for, and the source's own if an edit shows nothing
    /// else of it.
    fn light(&self, frame: u32) -> f32 {
        if let EditSource::Observed(_) = self.source {
            // The source brings its own fades.
            return 1.0;
        }
        self.ends.fade_light(&self.schedule.lines, frame)
    }

    /// Draws `frame` of the clip into `rgb`; for an edit over its `source` frame.
    pub(crate) fn draw(
        &self,
        frame: u32,
        source: Option<&[u8]>,
        easel: &mut PainterMemory,
        rgb: &mut Vec<u8>,
    ) {
        let takes = &self.schedule.takes;
        let index = self.take_at(frame);
        let PainterMemory {
            canvas,
            second,
            desk,
        } = easel;
        let mut vignette = self.draw_take(index, frame, source, canvas, desk);
        let next = takes.get(index + 1).map(|take| &take.shot);
        if let Some(next) = next.filter(|next| frame >= next.appears() && next.dissolve > 0) {
            // Open at both ends: the first frame of a dissolve shows some of the next take, the
            // last one some of this.
            let share = (frame - next.appears() + 1) as f32 / (next.dissolve + 1) as f32;
            let share = smooth(0.0, 1.0, share);
            let other = second.get_or_insert_with(|| self.canvas());
            let coming = self.draw_take(index + 1, frame, source, other, desk);
            canvas.dissolve(other, share);
            vignette += (coming - vignette) * share;
        }
        let ink = self.ends.appearance(frame, LETTERS_S);
        self.draw_letters(frame, index, ink, canvas);
        let light = self.light(frame) * self.swell.at(frame).light;
        canvas.finish(vignette * ink, light, rgb);
    }

    /// Lays caption and mark over the picture, each if the options enable it. Pictures of the caller's take no mark.
    fn draw_letters(&self, frame: u32, index: usize, ink: f32, canvas: &mut Canvas) {
        // Of an edit that changes most, the words are wholly there.
        let opacity = ink * smooth(0.0, 0.6, self.strength);
        for (line, caption) in self.schedule.lines.iter().zip(&self.captions) {
            if self.options.caption && (line.start..line.end).contains(&frame) {
                get_or_make(caption, || self.caption(line)).draw(frame, opacity, canvas);
            }
        }
        if let Some(mark) = &self.mark
            && self.frame_source(index).is_painted()
        {
            mark.draw(canvas, ink);
        }
    }

    fn caption(&self, line: &Shot) -> Caption {
        let words = CaptionText {
            text: &line.text,
            span: (line.start, line.end),
            avoid: &self.boxes_to_avoid(line),
            below: self.mark.as_ref().map_or(0, TextPage::bottom),
            system_fonts: self.options.system_fonts,
        };
        Caption::new(&words, self.clip.size, self.clip.fps)
    }

    /// Boxes that the caption of `line` must not cover: what may be a face in the pictures that show meanwhile, at
    /// the line's beginning, middle and end.
    fn boxes_to_avoid(&self, line: &Shot) -> Vec<[f32; 4]> {
        let mut boxes = Vec::new();
        let (mut canvas, mut desk) = (self.canvas(), CanvasPool::default());
        // Three instants must do: faces move slowly, and to search a given picture it has to be
        // drawn.
        for frame in [
            line.start,
            u32::midpoint(line.start, line.end),
            line.end - 1,
        ] {
            let index = self.take_at(frame);
            let moment = self.take_moment(index, frame, None);
            boxes.extend(
                self.frame_source(index)
                    .faces(moment, &mut canvas, &mut desk),
            );
        }
        boxes
    }

    /// The take that shows at `frame`.
    fn take_at(&self, frame: u32) -> usize {
        let takes = self.schedule.takes.iter();
        takes
            .take_while(|take| frame >= take.shot.end)
            .count()
            .min(self.schedule.takes.len().saturating_sub(1))
    }
}

/// The mark of painted frames, if the options enable it.
fn mark(spec: &VideoSpec, options: &StoryboardKind, size: Size) -> Option<TextPage> {
    if !options.mark {
        return None;
    }
    let draft = if spec.draft { "DRAFT · " } else { "" };
    let text = options.mark_text.replace("{seed}", &spec.seed.to_string());
    TextPage::mark(&format!("{draft}{text}"), size, options.system_fonts)
}

/// A shared value that is made at its first use and released after its last.
type LazySlot<T> = Mutex<Option<Arc<T>>>;

/// Returns the value in `slot`, after making it if the slot is empty.
fn get_or_make<T>(slot: &LazySlot<T>, make: impl FnOnce() -> T) -> Arc<T> {
    // Locked while it is made: other painters that need the same thing wait instead of making it
    // too. A panic in `make` leaves the slot empty and usable.
    let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(held.get_or_insert_with(|| Arc::new(make())))
}

/// Empty places.
fn slots<T>(count: usize) -> Vec<LazySlot<T>> {
    (0..count).map(|_| Mutex::new(None)).collect()
}

/// Empties `slot`; current users keep their reference.
fn release<T>(slot: &LazySlot<T>) {
    // A painter that still draws with the thing has its own reference and keeps it until it is
    // done.
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Half-life of the distance to a higher and to a lower level, seconds.
const RISE_S: f32 = 0.03;
const FALL_S: f32 = 0.16;

/// The swell of each frame.
#[derive(Debug, Default)]
struct SoundSwell(Vec<f32>);

impl SoundSwell {
    /// Follows the loudness of `track`, relative to its highest.
    fn from_sound(track: &SoundTrack, frames: u32, fps: u32) -> Self {
        let pcm = track.pcm();
        let loudness = |frame| {
            let (from, to) = (samples(frame, fps) * 2, samples(frame + 1, fps) * 2);
            let part = &pcm[from.min(pcm.len())..to.min(pcm.len())];
            let power: f32 = part.iter().map(|sample| sample * sample).sum();
            (power / part.len().max(1) as f32).sqrt()
        };
        let mut levels: Vec<f32> = (0..frames).map(loudness).collect();
        let most = levels.iter().copied().fold(1e-6, f32::max);
        // The share of a distance that is left after one frame, if half of it is left after
        // `half_s`.
        let [rise, fall] =
            [RISE_S, FALL_S].map(|half_s| (-std::f32::consts::LN_2 / (half_s * fps as f32)).exp());
        let mut held: Option<f32> = None;
        for level in &mut levels {
            // The root lifts quiet passages, which would hardly move the picture otherwise.
            let goal = (*level / most).sqrt();
            let before = *held.get_or_insert(goal);
            let keep = if goal > before { rise } else { fall };
            *level = goal + (before - goal) * keep;
            held = Some(*level);
        }
        Self(levels)
    }

    /// The pulse of `frame`.
    fn at(&self, frame: u32) -> FramePulse {
        self.0
            .get(frame as usize)
            .map_or(FramePulse::CALM, |swell| FramePulse::from_swell(*swell))
    }
}
