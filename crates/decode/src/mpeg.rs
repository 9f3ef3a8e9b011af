//! Finds the first frame of an MP3 or ADTS stream behind bytes that are none: padding that a tag does not
//! count, zero bytes, or the rest of a frame that was cut. Formats: ISO/IEC 11172-3, 13818-3 and 13818-7.

use crate::signatures::Container;

/// How far a frame is searched for, behind leading zero bytes.
pub(crate) const SEARCH_BYTES: usize = 16 << 10;

/// Kilobits per second by index, of MPEG-1 and of MPEG-2 and 2.5, layer III.
const KILOBITS: [[usize; 15]; 2] = [
    [
        0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    ],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
/// Samples per second by index, of MPEG-1.
const RATES: [usize; 3] = [44_100, 48_000, 32_000];

/// A frame by its header.
#[derive(PartialEq, Eq)]
struct Frame {
    container: Container,
    /// The bits of the header that stay the same in a stream.
    stream: [u8; 3],
}

/// Where two frames of one stream follow each other first.
pub(crate) fn start(bytes: &[u8]) -> Option<(usize, Container)> {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    (zeros..bytes.len().min(zeros + SEARCH_BYTES)).find_map(|at| {
        let (frame, length) = frame(&bytes[at..])?;
        let (next, _) = self::frame(bytes.get(at + length..)?)?;
        (frame == next).then_some((at, frame.container))
    })
}

/// The frame that `bytes` begin with, and its length.
fn frame(bytes: &[u8]) -> Option<(Frame, usize)> {
    let header: &[u8; 6] = bytes.first_chunk()?;
    if header[0] != 0xff {
        return None;
    }
    if header[1] & 0xf6 == 0xf0 {
        let length = u32::from_be_bytes([0, header[3] & 3, header[4], header[5]]) >> 5;
        let stream = [header[1], header[2] & 0xfd, header[3] & 0xc0];
        let container = Container::Adts;
        let length = usize::try_from(length).ok()?;
        return (length >= 7).then_some((Frame { container, stream }, length));
    }
    if header[1] & 0xe6 != 0xe2 {
        return None;
    }
    // 3 is MPEG-1, 2 is MPEG-2, 0 is 2.5.
    let (table, slower, unit) = match header[1] >> 3 & 3 {
        3 => (0, 1, 144_000),
        2 => (1, 2, 72_000),
        0 => (1, 4, 72_000),
        _ => return None,
    };
    let rate = RATES.get(usize::from(header[2] >> 2 & 3))? / slower;
    let kilobits = *KILOBITS[table].get(usize::from(header[2] >> 4))?;
    let length = unit * kilobits / rate + usize::from(header[2] >> 1 & 1);
    let stream = [header[1] & 0xfe, header[2] & 0x0c, 0];
    let container = Container::Mp3;
    (kilobits > 0).then_some((Frame { container, stream }, length))
}
