//! Recognises the files that this crate reads by their first bytes.

/// The supported formats of images.
#[derive(Clone, Copy)]
pub(crate) enum Format {
    Jpeg,
    Png,
    WebP,
    Gif,
}

impl Format {
    /// The format whose signature `bytes` begin with.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Self::WebP)
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            Some(Self::Gif)
        } else {
            None
        }
    }
}

/// The supported kinds of sound file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    Wav,
    Mp3,
    Adts,
    Mp4,
    Flac,
    Ogg,
    OggOpus,
    /// Also `WebM`, what browsers record.
    Matroska,
}

impl Container {
    /// The kind of file whose signature `bytes` begin with.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let at = |range: std::ops::Range<usize>| bytes.get(range).unwrap_or(&[]);
        match at(0..4) {
            b"RIFF" | b"RF64" | b"BW64" if at(8..12) == b"WAVE" => Some(Self::Wav),
            b"\x1aE\xdf\xa3" => Some(Self::Matroska),
            b"fLaC" => Some(Self::Flac),
            b"OggS" => {
                // The first packet follows the table of segments (RFC 3533, section 6).
                let packet = 27 + usize::from(*bytes.get(26)?);
                let opus = at(packet..packet + 8) == b"OpusHead";
                Some(if opus { Self::OggOpus } else { Self::Ogg })
            }
            _ if at(4..8) == b"ftyp" => Some(Self::Mp4),
            &[0xff, second, ..] if second & 0xf6 == 0xf0 => Some(Self::Adts),
            &[0xff, second, ..] if second & 0xe6 == 0xe2 => Some(Self::Mp3),
            _ => None,
        }
    }
}
