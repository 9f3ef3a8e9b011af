//! How alike two pictures are. The pictures come from FFmpeg; nothing here shares code with what
//! made them.

use std::path::Path;
use std::process::Command;

/// `rgb: [height][width][3] u8`.
#[derive(Clone)]
pub struct Frame {
    /// Width and height in pixels.
    pub size: (usize, usize),
    /// The samples.
    pub rgb: Vec<u8>,
}

impl Frame {
    /// Every frame of a video or picture file, scaled and cropped to cover `size`.
    pub fn all_of(path: &Path, size: (usize, usize)) -> Vec<Self> {
        let (width, height) = size;
        let cover = format!(
            "scale={width}:{height}:force_original_aspect_ratio=increase:flags=bicubic,crop={width}:{height}"
        );
        let output = Command::new("ffmpeg")
            .args(["-v", "error", "-i"])
            .arg(path)
            .args(["-vf", &cover, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"])
            .output()
            .unwrap_or_else(|error| panic!("ffmpeg is needed ({error}); ./test installs it"));
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {complaints}", path.display());
        let frames = output.stdout.chunks_exact(width * height * 3);
        frames
            .map(|rgb| Self {
                size,
                rgb: rgb.to_vec(),
            })
            .collect()
    }

    /// Peak signal-to-noise ratio against `other` in dB; infinite for equal frames.
    pub fn psnr_db(&self, other: &Self) -> f64 {
        assert_eq!(self.size, other.size);
        let square = |(a, b): (&u8, &u8)| f64::from(a.abs_diff(*b)).powi(2);
        let sum: f64 = self.rgb.iter().zip(&other.rgb).map(square).sum();
        10.0 * (255.0_f64.powi(2) * self.rgb.len() as f64 / sum).log10()
    }

    /// Structural similarity of the lightness against `other`, -1 to 1: Wang, Bovik, Sheikh and
    /// Simoncelli, "Image Quality Assessment" (2004), on 8x8 windows that lie side by side.
    pub fn ssim(&self, other: &Self) -> f64 {
        assert_eq!(self.size, other.size);
        let (mine, theirs) = (self.luma(), other.luma());
        let (width, height) = self.size;
        let corners = (0..height - 7)
            .step_by(8)
            .flat_map(|y| (0..width - 7).step_by(8).map(move |x| (x, y)));
        let windows: Vec<f64> = corners
            .map(|(x, y)| {
                let spots = (0..64).map(|spot| (y + spot / 8) * width + x + spot % 8);
                window_ssim(spots.map(|at| (mine[at], theirs[at])))
            })
            .collect();
        windows.iter().sum::<f64>() / windows.len() as f64
    }

    /// Mean colour of the middle ninth, red, green, blue in 0 to 255.
    pub fn middle_colour(&self) -> [f64; 3] {
        let (width, height) = self.size;
        let mut sums = [0.0; 3];
        let (rows, columns) = (height / 3..height * 2 / 3, width / 3..width * 2 / 3);
        let count = (rows.len() * columns.len()) as f64;
        for y in rows {
            for x in columns.clone() {
                for (channel, sum) in sums.iter_mut().enumerate() {
                    *sum += f64::from(self.rgb[(y * width + x) * 3 + channel]);
                }
            }
        }
        sums.map(|sum| sum / count)
    }

    fn luma(&self) -> Vec<f64> {
        let weighed = |rgb: &[u8]| {
            let [r, g, b] = [rgb[0], rgb[1], rgb[2]].map(f64::from);
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        self.rgb.chunks_exact(3).map(weighed).collect()
    }
}

fn window_ssim(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (c1, c2) = ((0.01_f64 * 255.0).powi(2), (0.03_f64 * 255.0).powi(2));
    let (mut n, mut a, mut b, mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in pairs {
        n += 1.0;
        a += x;
        b += y;
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    let (a, b) = (a / n, b / n);
    let (var_a, var_b, both) = (aa / n - a * a, bb / n - b * b, ab / n - a * b);
    let means = (2.0 * a * b + c1) / (a * a + b * b + c1);
    means * (2.0 * both + c2) / (var_a + var_b + c2)
}

/// Mono sound of a file at 8,000 Hz in -1 to 1; empty when it has none.
pub fn sound_of(path: &Path) -> Vec<f32> {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(path)
        .args(["-vn", "-ac", "1", "-ar", "8000", "-f", "f32le", "-"])
        .output()
        .unwrap_or_else(|error| panic!("ffmpeg is needed ({error}); ./test installs it"));
    let samples = output.stdout.chunks_exact(4);
    samples
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

/// How much of `sound`'s power, 0 to 1, lies at `hz`, by Goertzel's algorithm over windows of
/// 0.1 s that are averaged.
pub fn share_at(sound: &[f32], hz: f64) -> f64 {
    let turn = 2.0 * (std::f64::consts::TAU * hz / 8000.0).cos();
    let windows = sound.chunks_exact(800).map(|window| {
        let (mut one, mut two) = (0.0, 0.0);
        let mut power = 0.0;
        for sample in window {
            let sample = f64::from(*sample);
            power += sample * sample;
            (one, two) = (sample + turn * one - two, one);
        }
        let tone = one * one + two * two - turn * one * two;
        // A pure tone of n samples has the power n/2 and gives (n/2)^2.
        (tone * 2.0 / 800.0, power)
    });
    let (tones, powers) = windows.fold((0.0, 0.0), |(t, p), (tone, power)| (t + tone, p + power));
    if powers > 0.0 { tones / powers } else { 0.0 }
}

/// The size at which results are compared with what was given, in pixels.
pub const COVER: (usize, usize) = (854, 480);

/// A given picture as it fills a frame of [`COVER`]; `name` tells its format.
pub fn given(bytes: &[u8], name: &str) -> Frame {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    Frame::all_of(&path, COVER).remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waves(shift: usize) -> Frame {
        let shade = |at: usize| ((at % 64 + shift) * 3) as u8;
        Frame {
            size: (64, 32),
            rgb: (0..64 * 32)
                .flat_map(|at| [shade(at), shade(at + 7), 99])
                .collect(),
        }
    }

    #[test]
    fn equal_frames_are_equal_and_others_are_less_so_the_further_they_are() {
        let (same, near, far) = (waves(0), waves(1), waves(9));
        assert!(same.psnr_db(&same).is_infinite() && (same.ssim(&same) - 1.0).abs() < 1e-9);
        assert!(same.psnr_db(&near) > same.psnr_db(&far) + 10.0);
        assert!(same.ssim(&near) > same.ssim(&far));
    }

    #[test]
    fn a_tone_is_found_where_it_is() {
        let tone: Vec<f32> = (0..8000)
            .map(|at| (f64::from(at) / 8000.0 * 700.0 * std::f64::consts::TAU).sin() as f32)
            .collect();
        assert!(share_at(&tone, 700.0) > 0.95, "{}", share_at(&tone, 700.0));
        assert!(share_at(&tone, 1500.0) < 0.01);
    }
}
