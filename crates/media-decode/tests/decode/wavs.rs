//! WAV files as programs write them that stream, that died, or that do not know the format well: the
//! samples count, whatever the sizes say.

use crate::samples::{code, ffmpeg, sound, wav};

const HEADER_BYTES: usize = 44;
const FRAMES: usize = 2 * 16_000;

/// An honest WAV of two seconds.
fn honest() -> Vec<u8> {
    wav(16_000, FRAMES)
}

/// The same with other sizes.
fn sized(riff: u32, data: u32) -> Vec<u8> {
    let mut file = honest();
    file[4..8].copy_from_slice(&riff.to_le_bytes());
    file[40..44].copy_from_slice(&data.to_le_bytes());
    file
}

/// The same with chunks before and behind the samples.
fn with_chunks(before: &[u8], behind: &[u8]) -> Vec<u8> {
    let file = honest();
    let (head, data) = file.split_at(HEADER_BYTES - 8);
    let mut file = [head, before, data, behind].concat();
    let riff = u32::try_from(file.len() - 8).unwrap();
    file[4..8].copy_from_slice(&riff.to_le_bytes());
    file
}

fn chunk(kind: &[u8; 4], size: u32, body: &[u8]) -> Vec<u8> {
    [kind, &size.to_le_bytes()[..], body].concat()
}

#[test]
fn the_samples_that_are_there_count_and_not_the_sizes() {
    let expected = sound(&honest()).unwrap();
    let data = u32::try_from(FRAMES * 2).unwrap();
    let riff = data + 36;
    for (name, file) in [
        ("both the largest", sized(u32::MAX, u32::MAX)),
        ("both half of it", sized(0x7fff_ffff, 0x7fff_ffff)),
        ("both zero", sized(0, 0)),
        ("a closed pipe", sized(36, 0)),
        ("a guess", sized(2_000_000_036, 2_000_000_000)),
        ("RIFF short by 8", sized(riff - 8, data)),
        ("RIFF short by 1", sized(riff - 1, data)),
        ("RIFF like the data", sized(data, data)),
        ("RIFF zero", sized(0, data)),
        ("only the data unknown", sized(riff, u32::MAX)),
        ("only the data zero", sized(riff, 0)),
        ("data too long", sized(riff, data + 100)),
    ] {
        assert_eq!(sound(&file).unwrap(), expected, "{name}");
    }
}

#[test]
fn other_chunks_are_no_sound_even_with_wrong_sizes() {
    let expected = sound(&honest()).unwrap();
    let text = b"INFOISFT\x0e\0\0\0Lavf60.16.100\0";
    let size = u32::try_from(text.len()).unwrap();
    let list = chunk(b"LIST", size, text);
    let unpadded = chunk(b"bext", 5, b"12345");
    let padded = chunk(b"bext", 5, b"12345\0");
    for (name, before) in [
        ("a list", &list),
        ("a chunk of an odd length", &padded),
        ("one without its pad byte", &unpadded),
        ("a list that claims less", &chunk(b"LIST", size - 7, text)),
        ("a list that claims more", &chunk(b"LIST", size + 9, text)),
        ("a list that claims all", &chunk(b"LIST", u32::MAX, text)),
        ("a fact of nothing", &chunk(b"fact", 4, &[0; 4])),
        ("an empty chunk", &chunk(b"JUNK", 0, b"")),
    ] {
        assert_eq!(
            sound(&with_chunks(before, b"")).unwrap(),
            expected,
            "{name}"
        );
        assert_eq!(
            sound(&with_chunks(before, &list)).unwrap(),
            expected,
            "{name}"
        );
    }
    // Behind samples of an unknown number, too.
    let tags = [list, chunk(b"id3 ", 6, b"ID3\x03\0\0")].concat();
    for unknown in [0, u32::MAX] {
        let mut file = with_chunks(b"", &tags);
        file[40..44].copy_from_slice(&unknown.to_le_bytes());
        assert_eq!(sound(&file).unwrap(), expected, "{unknown}");
    }
}

#[test]
fn wav_of_64_bits_is_read() {
    let expected = sound(&honest()).unwrap();
    let bytes = (FRAMES * 2) as u64;
    for stated in [bytes, 0, u64::MAX] {
        let sizes = [bytes + 72, stated, FRAMES as u64]
            .map(u64::to_le_bytes)
            .concat();
        let ds64 = chunk(b"ds64", 28, &[&sizes[..], &[0; 4]].concat());
        let file = honest();
        let mut file = [b"RF64\xff\xff\xff\xffWAVE", &ds64[..], &file[12..]].concat();
        let size_at = file.len() - FRAMES * 2 - 4;
        file[size_at..size_at + 4].fill(0xff);
        assert_eq!(sound(&file).unwrap(), expected, "{stated}");
    }
}

#[test]
fn an_mp3_in_a_wav_is_read() {
    let source = "aevalsrc=0.5*sin(2*PI*440*t):s=44100:d=2";
    let decoded = sound(&ffmpeg(source, "-c:a libmp3lame -f wav")).unwrap();
    assert!(
        (decoded.seconds() - 2.0).abs() < 0.1,
        "{}",
        decoded.seconds()
    );
}

#[test]
fn what_has_no_samples_is_refused() {
    let file = honest();
    for (name, file, expected) in [
        ("no chunk", file[..12].to_vec(), "unsupported_audio"),
        ("a format only", file[..36].to_vec(), "unsupported_audio"),
        (
            "no format",
            [&file[..12], &file[36..]].concat(),
            "unsupported_audio",
        ),
        (
            "no sample",
            file[..HEADER_BYTES].to_vec(),
            "unsupported_audio",
        ),
        (
            "a few samples",
            file[..HEADER_BYTES + 200].to_vec(),
            "audio_too_short",
        ),
    ] {
        assert_eq!(code(&sound(&file)), expected, "{name}");
    }
}
