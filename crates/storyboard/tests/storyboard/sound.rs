//! What is to be heard.

use kinora_contract::Size;

use super::support::*;

#[test]
fn sound_is_whole_quiet_at_the_ends_and_never_harsh() {
    for prompt in [
        "a storm at sea, then a quiet forest at night",
        "a meadow in the morning",
    ] {
        let pcm = whole(&spec(prompt, Size::new(64, 64), 6, 4)).pcm;
        assert_eq!(pcm.len(), 6 * 48_000 * 2);
        assert!(pcm.iter().all(|sample| sample.abs() <= 0.7), "{prompt}");
        assert!(pcm[..2].iter().all(|sample| sample.abs() < 1e-3));
        assert!(
            pcm[pcm.len() - 2..]
                .iter()
                .all(|sample| sample.abs() < 1e-3)
        );
        let loudness = |part: &[f32]| {
            (part.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / part.len() as f64).sqrt()
        };
        for (second, part) in pcm[48_000..pcm.len() - 3 * 48_000]
            .chunks(48_000)
            .enumerate()
        {
            let level = 20.0 * loudness(part).log10();
            assert!(
                (-38.0..-12.0).contains(&level),
                "{prompt}: {level:.0} dB in half-second {second}"
            );
        }
        let step = pcm.chunks_exact(2).zip(pcm.chunks_exact(2).skip(1));
        let most = step
            .map(|(a, b)| (a[0] - b[0]).abs())
            .fold(0.0_f32, f32::max);
        assert!(most < 0.2, "{prompt}: a step of {most}");
    }
}
