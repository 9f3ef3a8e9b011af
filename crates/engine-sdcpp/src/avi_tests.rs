//! What is read of films that the server's own writer made, and of films that lie.

use proptest::prelude::*;

use super::*;

/// Three frames of 32x16, of grey 50, 120 and 200, at 8 frames/s; and 24 kHz stereo that rises in
/// the left channel and falls in the right one. `tests/data/films.cpp` made it.
const LOUD: &[u8] = include_bytes!("../tests/data/loud.avi");
/// The same without sound.
const SILENT: &[u8] = include_bytes!("../tests/data/silent.avi");

#[test]
fn a_film_of_the_server_s_writer_is_read() {
    let film = parse(LOUD, 3).unwrap();
    assert_eq!((film.size, film.frames.len()), (Size::new(32, 16), 3));
    for (jpeg, grey) in film.frames.iter().zip([50_u8, 120, 200]) {
        let picture = kinora_media_decode::image_of(jpeg, 32).unwrap();
        assert_eq!((picture.width, picture.height), (32, 16));
        assert!(picture.rgb.iter().all(|byte| byte.abs_diff(grey) <= 2));
    }
    let sound = film.sound.unwrap();
    assert_eq!((sound.rate_hz, sound.channels), (24_000, 2));
    let samples: Vec<i16> = sound
        .pcm
        .as_chunks()
        .0
        .iter()
        .map(|sample| i16::from_le_bytes(*sample))
        .collect();
    assert_eq!(samples.len(), 2 * 900);
    assert!(samples[2] > samples[0] && samples[3] < samples[1]);
    assert!(samples[1_798] > 16_000 && samples[1_799] < -16_000);

    let film = parse(SILENT, 3).unwrap();
    assert_eq!((film.frames.len(), film.sound), (3, None));
}

#[test]
fn other_files_and_more_frames_are_refused() {
    assert_eq!(parse(b"", 3), Err(AviError::NotAvi));
    assert_eq!(parse(b"RIFF\x04\0\0\0WAVE", 3), Err(AviError::NotAvi));
    assert_eq!(parse(b"RIFF\x04\0\0\0AVI ", 3), Err(AviError::NoVideo));
    assert_eq!(parse(LOUD, 2), Err(AviError::TooManyFrames));
    let of_pcm = |tag: u8| {
        let mut file = LOUD.to_vec();
        let place = file.windows(4).rposition(|four| four == b"strf").unwrap();
        file[place + 8] = tag;
        file
    };
    assert!(parse(&of_pcm(1), 3).is_ok());
    assert_eq!(parse(&of_pcm(3), 3), Err(AviError::SoundFormat));
}

#[test]
fn every_cut_is_an_error_or_a_shorter_film() {
    for end in 0..LOUD.len() {
        // The file's own length says that there was more.
        assert!(parse(&LOUD[..end], 3).is_err(), "{end}");
    }
}

proptest! {
    #[test]
    fn no_lie_reads_beyond_the_file(
        lies in proptest::collection::vec((0..LOUD.len(), any::<u8>()), 1..20),
    ) {
        let mut file = LOUD.to_vec();
        for (place, byte) in lies {
            file[place] = byte;
        }
        if let Ok(film) = parse(&file, 3) {
            let held: usize = film.frames.iter().map(|frame| frame.len()).sum();
            let sound = film.sound.map_or(0, |sound| sound.pcm.len());
            prop_assert!(held + sound <= file.len());
        }
    }

    #[test]
    fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, 10);
        let _ = parse(&[b"RIFF\xff\0\0\0AVI ".as_slice(), &bytes].concat(), 10);
    }
}
